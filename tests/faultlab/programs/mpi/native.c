#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double deep(int n) {
    volatile char room[512];
    room[n % 512] = 1;
    return n ? room[n % 512] + deep(n - 1) : 0;
}

int main(int argc, char **argv) {
    int rank, size, who;
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "early")) { MPI_Comm_rank(MPI_COMM_WORLD, &rank); }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    who = argc > 2 ? atoi(argv[2]) % size : 0;
    double *grad = calloc(256, sizeof *grad), *sum = calloc(256, sizeof *sum);
    for (int step = 0; step < 12; step++) {
        MPI_Allreduce(grad, sum, 256, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) printf("iter %d  residual %.3e\n", step, 1.0 / (step + 1));
        fflush(stdout);
    }
    if (rank == who) {
        if (!strcmp(how, "segv")) { volatile double *p = NULL; sum[0] = *p; }
        if (!strcmp(how, "abort")) abort();
        if (!strcmp(how, "fpe")) { volatile int zero = 0; sum[0] = size / zero; }
        if (!strcmp(how, "exit")) exit(9);
        if (!strcmp(how, "quit")) _exit(0);
        if (!strcmp(how, "kill")) raise(SIGKILL);
        if (!strcmp(how, "term")) raise(SIGTERM);
        if (!strcmp(how, "mpiabort")) MPI_Abort(MPI_COMM_WORLD, 42);
        if (!strcmp(how, "illegal")) __builtin_trap();
        if (!strcmp(how, "stack")) sum[0] = deep(1 << 20);
        if (!strcmp(how, "corrupt")) { free(grad); free(grad); }
        if (!strcmp(how, "rank")) MPI_Send(grad, 4, MPI_DOUBLE, size + 1, 0, MPI_COMM_WORLD);
        if (!strcmp(how, "count")) MPI_Send(grad, -4, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
        if (!strcmp(how, "type")) MPI_Send(grad, 4, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD);
        if (!strcmp(how, "comm")) MPI_Barrier(MPI_COMM_NULL);
        if (!strcmp(how, "op")) MPI_Reduce(grad, sum, 4, MPI_DOUBLE, MPI_OP_NULL, 0, MPI_COMM_WORLD);
    }
    if (!strcmp(how, "truncate")) {
        if (rank == 0) MPI_Send(grad, 200, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(grad, 10, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!strcmp(how, "bcast")) MPI_Bcast(grad, rank == 0 ? 200 : 20, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(how, "nofinalize")) MPI_Finalize();
    return 0;
}
