"""What the ranks that did nothing wrong say when one is gone or silent, by framework and by how they notice."""

TIMEOUT_NEW = """[rank{r}]:[E{glogn} ProcessGroupNCCL.cpp:{ln}] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)={tmo}) ran for {ran} milliseconds before timing out.
[rank{r}]:[E{glogn} ProcessGroupNCCL.cpp:{ln}] [PG ID 0 PG GUID 0(default_pg) Rank {r}]  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {last}, last completed work: {done}
[rank{r}]:[E{glogn} ProcessGroupNCCL.cpp:{ln}] [Rank {r}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.
[rank{r}]:[E{glogn} ProcessGroupNCCL.cpp:{ln}] [Rank {r}] To avoid data inconsistency, we are taking the entire process down.
[rank{r}]:[E{glogn} ProcessGroupNCCL.cpp:{ln}] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Process group watchdog thread terminated with exception: [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)={tmo}) ran for {ran} milliseconds before timing out.
Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:{ln} (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f{hexb} in {pkg}/torch/lib/libc10.so)
frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<std::chrono::duration<long> >) + 0x1d2 (0x7f{hexb} in {pkg}/torch/lib/libtorch_cuda.so)
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 0 PG GUID 0(default_pg) Rank {r}] Process group watchdog thread terminated with exception: [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, Timeout(ms)={tmo}) ran for {ran} milliseconds before timing out."""
TIMEOUT_OLD = """[E ProcessGroupNCCL.cpp:{ln}] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, Timeout(ms)={tmo}) ran for {ran} milliseconds before timing out.
[E ProcessGroupNCCL.cpp:{ln}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.
[E ProcessGroupNCCL.cpp:{ln}] To avoid data inconsistency, we are taking the entire process down.
terminate called after throwing an instance of 'std::runtime_error'
  what():  [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, Timeout(ms)={tmo}) ran for {ran} milliseconds before timing out."""
DUMP = """[rank{r}]:[E{glogn} ProcessGroupNCCL.cpp:{ln}] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Observed flight recorder dump signal from another rank via TCPStore.
[rank{r}]:[E{glogn} ProcessGroupNCCL.cpp:{ln}] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Received a dump signal due to a collective timeout from rank {speaker} and we will try our best to dump the debug info. Last enqueued NCCL work: {last}, last completed NCCL work: {done}.This is most likely caused by incorrect usages of collectives."""
NCCL_CLOSED = """{host}:{pid}:{pid2} [{g}] include/socket.h:{ln} NCCL WARN Net : Connection closed by remote peer {peerhost}<{port}>
{host}:{pid}:{pid2} [{g}] NCCL INFO include/socket.h:{ln} -> 6
{host}:{pid}:{pid2} [{g}] NCCL INFO transport/net_socket.cc:{ln} -> 6
[rank{r}]: Traceback (most recent call last):
[rank{r}]:   File "{wd}/{script}", line {ln}, in <module>
[rank{r}]:     main()
[rank{r}]:   File "{pkg}/torch/distributed/distributed_c10d.py", line {ln}, in all_reduce
[rank{r}]:     work = group.allreduce([tensor], opts)
[rank{r}]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:{ln}, remote process exited or there was a network error, NCCL version 2.21.5
[rank{r}]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.
[rank{r}]: Last error:
[rank{r}]: NET/Socket : peer {peerhost}<{port}> closed the connection"""
STORE = """[rank{r}]:[W{glogn} TCPStore.cpp:{ln}] [c10d] recvValue failed on SocketImpl(fd={g}7, addr=[{host}]:{port}, remote=[{peerhost}]:29500): Connection reset by peer
[rank{r}]:[W{glogn} ProcessGroupNCCL.cpp:{ln}] [PG ID 0 PG GUID 0 Rank {r}] Failed to check the "should dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe"""
GLOO = """{tag}Traceback (most recent call last):
{tag}  File "{wd}/{script}", line {ln}, in <module>
{tag}    dist.all_reduce(grads)
{tag}  File "{pkg}/torch/distributed/distributed_c10d.py", line {ln}, in all_reduce
{tag}    work.wait()
{tag}RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:{ln}] Connection closed by peer [{ip}]:{port}"""
GLOO_WAIT = """{tag}Traceback (most recent call last):
{tag}  File "{wd}/{script}", line {ln}, in <module>
{tag}    dist.all_reduce(grads)
{tag}RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:{ln}] Timed out waiting {tmo}ms for recv operation to complete"""
MPI = """[{host}:{pid}] *** An error occurred in MPI_Allreduce
[{host}:{pid}] *** reported by process [{ln},{r}]
[{host}:{pid}] *** on communicator MPI_COMM_WORLD
[{host}:{pid}] *** MPI_ERR_PROC_FAILED: process failed
[{host}:{pid}] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,"""
HOROVOD = """[{tsf}: E /tmp/pip-req-build/horovod/common/operations.cc:{ln}] [{r}]: Horovod background loop uncaught exception: [/tmp/pip-req-build/third_party/compatible_gloo/gloo/transport/tcp/pair.cc:{ln}] Connection closed by peer [{ip}]:{port}
Traceback (most recent call last):
  File "{wd}/{script}", line {ln}, in <module>
    train(epoch)
  File "{pkg}/horovod/torch/mpi_ops.py", line {ln}, in synchronize
    raise HorovodInternalError(e)
horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished execution."""
STALL = """[{tsf}: W /tmp/pip-req-build/horovod/common/stall_inspector.cc:{ln}] One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more than 60 seconds. This may indicate that different ranks are trying to submit different tensors or that only subset of ranks is submitting tensors, which will cause deadlock.
Missing ranks:
{root}: [allreduce.layer4.1.conv2.weight, allreduce.fc.bias ...]"""
JAX = """E{glog} {pid} coordination_service_agent.cc:{ln}] Polled an error from coordination service (this can be an error from this or another task).
F{glog} {pid} client.h:{ln}] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died; see the other task logs for more details. Disable Python buffering, i.e. `python -u`, to be sure to see all the previous output. absl::Status: UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):
/job:jax_worker/replica:0/task:{root}
The tasks have crashed. Check the task logs for an earlier error, or scheduler events (e.g. preemption, eviction) to debug further."""
JAX_LEADER = """E{glog} {pid} coordination_service.cc:{ln}] /job:jax_worker/replica:0/task:{root} has been set to ERROR in coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:{root} heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly. Check the task logs for an earlier error or scheduler events (e.g. preemption, eviction) to debug further."""
TF = """{tsf}: E tensorflow/core/common_runtime/base_collective_executor.cc:{ln}] BaseCollectiveExecutor::StartAbort UNAVAILABLE: Collective ops is aborted by: Connection reset by peer
Additional GRPC error information from remote target /job:worker/replica:0/task:{root} while calling /tensorflow.WorkerService/RecvBuf:
Traceback (most recent call last):
  File "{wd}/{script}", line {ln}, in <module>
    model.fit(dataset, epochs=10)
tensorflow.python.framework.errors_impl.UnavailableError: Graph execution error: Collective ops is aborted by: Connection reset by peer"""
TF_HANG = """{tsf}: E tensorflow/core/distributed_runtime/worker.cc:{ln}] Collective ops is aborted by: DEADLINE_EXCEEDED: Collective has timed out during execution; example stragglers: /job:worker/replica:0/task:{root}
tensorflow.python.framework.errors_impl.DeadlineExceededError: Collective has timed out during execution."""

CLOSED = {
    "pytorch": (NCCL_CLOSED, STORE, ""),
    "gloo": (GLOO,),
    "deepspeed": (NCCL_CLOSED, STORE),
    "ray": (GLOO, NCCL_CLOSED),
    "mpi": ("", MPI, ""),
    "horovod": (HOROVOD,),
    "jax": (JAX,),
    "tensorflow": (TF,),
}
WAITED = {
    "pytorch": (TIMEOUT_NEW, TIMEOUT_NEW, TIMEOUT_OLD),
    "gloo": (GLOO_WAIT,),
    "deepspeed": (TIMEOUT_NEW, TIMEOUT_OLD),
    "ray": (TIMEOUT_NEW,),
    "mpi": ("",),
    "horovod": ("",),
    "jax": (JAX,),
    "tensorflow": (TF_HANG,),
}
