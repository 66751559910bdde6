#!/bin/bash
# Builds two small libraries and a program that uses them, then something about them changes.
set -e
gcc -shared -fPIC -o libkernels.so kernels.c ${FLAGS:-}
gcc -o train main.c -L. -lkernels -Wl,-rpath,'$ORIGIN'
case $1 in
    gone) rm libkernels.so ;;
    symbol) gcc -shared -fPIC -DOLD -o libkernels.so kernels.c ;;
    version)
        echo 'KERNELS_2 { global: fused_add; };' > two.map
        echo 'KERNELS_1 { global: fused_add; };' > one.map
        gcc -shared -fPIC -Wl,--version-script=two.map -o libkernels.so kernels.c
        gcc -o train main.c -L. -lkernels -Wl,-rpath,'$ORIGIN'
        gcc -shared -fPIC -Wl,--version-script=one.map -o libkernels.so kernels.c
        ;;
    glibc)
        gcc -o train main.c -L. -lkernels -Wl,-rpath,'$ORIGIN'
        python patch.py train
        ;;
    class) head -c 900 libkernels.so > cut && mv cut libkernels.so ;;
    header) printf '\177ELF\001' | dd of=libkernels.so conv=notrunc bs=1 status=none ;;
    path) mkdir -p lib && mv libkernels.so lib/ && export LD_LIBRARY_PATH=/usr/local/cuda/lib64 ;;
    preload) export LD_PRELOAD=/usr/lib/libjemalloc_lab.so.2 ;;
    crash) ;;
esac
echo "launching"
./train "$@"
