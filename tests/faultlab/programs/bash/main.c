#include <stdio.h>
#include <stdlib.h>

double fused_add(double *x, int n);

int main(int argc, char **argv) {
    int n = argc > 1 && argv[1][0] == 'c' ? 40000000 : 64;
    double *x = calloc(64, sizeof *x);
    printf("sum %f\n", fused_add(x, n));
    return 0;
}
