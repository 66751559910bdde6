#!/bin/bash
# A job script's head: modules, environment, folders; then the training.
set -euo pipefail
how=$1
echo "== job on $(hostname) at $(date +%T)"
mkdir -p logs data
case $how in
    module) module load cuda/12.4 nccl/2.21 ;;
    conda) conda activate train ;;
    source) source /opt/venvs/train/bin/activate ;;
    profile) . ./env.sh ;;
    unbound) export OUT=$SCRATCH_DIR/$SLURM_JOB_NAME ;;
    positional) data=$2 ;;
    function) setup_env train ;;
    python2) python2 train.py ;;
    srun) srun --mpi=pmix python train.py ;;
    torchrun) torchrun --nproc_per_node=8 train.py ;;
    deepspeed) deepspeed --num_gpus=8 train.py --deepspeed ds.json ;;
    nvidia) nvidia-smi -L ;;
    array) nodes=(); echo "${nodes[0]}" ;;
    arithmetic) world=$((8 * NODES)) ;;
    divide) share=$(expr 64 / 0) ;;
    compare) [ "$how" -gt 3 ] ;;
    cd) cd /scratch/projects/train ;;
    glob) cp data/*.json logs/ ;;
    readonly) readonly RANK=0; RANK=1 ;;
    export) export MASTER-ADDR=node01 ;;
    sudo) sudo -n sysctl -w net.core.somaxconn=4096 ;;
    systemctl) systemctl restart nvidia-persistenced ;;
    python) python -c "import torch; print(torch.cuda.device_count())" ;;
    heredoc) python - <<'PY'
import yaml_config
PY
        ;;
    killed) (kill -9 $BASHPID); echo next ;;
    timeout) timeout 0.5 sleep 20 ;;
    pipe) cat data/list.txt | sort | head -1 > logs/first ;;
    mount) mount -t nfs storage01:/export data ;;
    ulimit) ulimit -n 4194304000 ;;
esac
echo "== starting"
