#ifdef OLD
double fused_sub(double *x, int n) { return x[0] - n; }
#else
double fused_add(double *x, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum;
}
#endif
