"""Outputs are read in the forms that users paste: of other versions, with other columns, with the
name of the host in front, without the header."""

from __future__ import annotations

import pytest

from kb.corpus.base import KnowledgeBase
from tests.kb.test_checks import outputs_of

LFS = """Disk quotas for usr alice (uid 1000):
     Filesystem    used   quota   limit   grace   files   quota   limit   grace
"""
QUOTA = """Disk quotas for user alice (uid 1000):
     Filesystem   space   quota   limit   grace   files   quota   limit   grace
"""
GPUS = (
    "index, name, clocks.current.sm [MHz], power.draw [W], temperature.gpu, utilization.gpu [%]\n"
)
METRICS = """nv_inference_request_success{{model="embed",version="1"}} 20537
nv_inference_count{{model="embed",version="1"}} 20537
nv_inference_exec_count{{model="embed",version="1"}} {executions}
nv_inference_queue_duration_us{{model="embed",version="1"}} {queue}
nv_inference_compute_infer_duration_us{{model="embed",version="1"}} 501230011
"""
STATS = (
    '{"model_stats":[{"name":"embed","version":"1","last_inference":1772705472000,'
    '"inference_count":5223,"execution_count":5223,"inference_stats":{"success":{"count":5223,'
    '"ns":142000000000},"fail":{"count":0,"ns":0},"queue":{"count":5223,"ns":125000000000},'
    '"compute_input":{"count":5223,"ns":156000000},"compute_infer":{"count":5223,'
    '"ns":16700000000},"compute_output":{"count":5223,"ns":266000000}},"batch_stats":[]}]}'
)
PBTXT = 'name: "embed"\nplatform: "tensorrt_plan"\nmax_batch_size: {size}\ninput [\n  {{\n    name: "x"\n    dims: [ 16 ]\n  }}\n]\n'

SAMPLES = {
    # Quotas
    "lfs over the limit": (
        "findmnt-quota",
        {"star-marks-exceeded-quota"},
        LFS
        + "       /scratch   10.0T*    9.5T     10T   6d23h59m  812345       0       0       -\n",
    ),
    "lfs over by files": (
        "findmnt-quota",
        {"star-marks-exceeded-quota"},
        LFS
        + "/scratch\n                   9.1T     10T     11T       - 1000001* 1000000 1100000    none\n",
    ),
    "lfs below": (
        "findmnt-quota",
        set(),
        LFS + "       /scratch    1.2T    9.5T     10T       -  812345       0       0       -\n",
    ),
    "lfs without a limit": (
        "findmnt-quota",
        set(),
        LFS + "       /scratch    1.2T      0k      0k       -  812345       0       0       -\n",
    ),
    "quota -s over": (
        "findmnt-quota",
        {"star-marks-exceeded-quota"},
        QUOTA
        + "      /dev/sda1  51200M*  50000M  60000M   6days   81234       0       0        \n",
    ),
    "quota -s below, files over": (
        "findmnt-quota",
        {"star-marks-exceeded-quota"},
        QUOTA + "nas:/home  1200M  50000M  60000M          500001*  500000  550000    none\n",
    ),
    "quota -s, the hard limit without a star": (
        "findmnt-quota",
        {"star-marks-exceeded-quota"},
        QUOTA + "nas:/home  50000M  0M  50000M          812  0  0\n",
    ),
    "quota without -s, below": (
        "findmnt-quota",
        set(),
        QUOTA.replace("space", "blocks") + "nas:/home  1048576  52428800  62914560  812  0  0\n",
    ),
    "df of a quota": (
        "df-disk-inodes",
        {"full-by-space"},
        "Filesystem                Size  Used Avail Use% Mounted on\n"
        "10.9.0.1:/vol1/home/alice   50G   50G     0 100% /home/alice\n",
    ),
    # vLLM
    "vllm v0 nothing left": (
        "vllm-startup-log",
        {"no-room-cache-weights", "cache-cannot-hold-request"},
        "INFO 07-02 17:08:07 [worker.py:295] Memory profiling takes 257.11 seconds\n"
        "INFO 07-02 17:08:07 [worker.py:295] the current vLLM instance can use total_gpu_memory"
        " (23.57GiB) x gpu_memory_utilization (0.50) = 11.79GiB\n"
        "INFO 07-02 17:08:07 [worker.py:295] model weights take 6.59GiB; non_torch_memory takes"
        " 8.29GiB; PyTorch activation peak memory takes 4.93GiB; the rest of the memory reserved for"
        " KV Cache is -7.83GiB.\n"
        "INFO 07-02 17:08:07 [executor_base.py:118] Maximum concurrency for 4096 tokens per request:"
        " 0.00x\n",
    ),
    "vllm v0 enough": (
        "vllm-startup-log",
        set(),
        "INFO 12-22 10:55:34 model_runner.py:1097] Loading model weights took 8.5107 GB\n"
        "INFO 12-22 10:55:34 worker.py:241] model weights take 8.51GiB; non_torch_memory takes"
        " 0.26GiB; PyTorch activation peak memory takes 0.94GiB; the rest of the memory reserved for"
        " KV Cache is 42.18GiB.\n"
        "INFO 12-22 10:55:35 gpu_executor.py:76] # GPU blocks: 7150, # CPU blocks: 1310\n"
        "INFO 12-22 10:55:35 gpu_executor.py:80] Maximum concurrency for 2048 tokens per request:"
        " 55.86x\n",
    ),
    "vllm lines of a message": (
        "vllm-startup-log",
        {"no-room-cache-weights"},
        "the current vLLM instance can use total_gpu_memory (79.11GiB) x gpu_memory_utilization"
        " (0.20) = 15.82GiB\n"
        "model weights take 14.99GiB; non_torch_memory takes 0.35GiB; PyTorch activation peak memory"
        " takes 0.24GiB;\nthe rest of the memory reserved for KV Cache is 0.24GiB.\n",
    ),
    "vllm v0 no blocks": (
        "vllm-startup-log",
        {"no-room-cache-weights"},
        "INFO 05-30 06:40:55 executor_base.py:110] # cuda blocks: 0, # CPU blocks: 9362\n",
    ),
    "vllm v1 nearly one request": (
        "vllm-startup-log",
        {"few-full-requests"},
        "(EngineCore_DP0 pid=212) INFO 10-05 09:12:41 [gpu_worker.py:298] Available KV cache memory:"
        " 16.22 GiB\n"
        "(EngineCore_DP0 pid=212) INFO 10-05 09:12:41 [kv_cache_utils.py:1087] GPU KV cache size:"
        " 141,712 tokens\n"
        "(EngineCore_DP0 pid=212) INFO 10-05 09:12:41 [kv_cache_utils.py:1091] Maximum concurrency"
        " for 131,072 tokens per request: 1.08x\n",
    ),
    "vllm v1 few tokens": (
        "vllm-startup-log",
        {"no-room-cache-weights"},
        "INFO 10-05 09:12:41 [kv_cache_utils.py:1087] GPU KV cache size: 1,136 tokens\n",
    ),
    "vllm slow weights": (
        "vllm-startup-log",
        {"slow-weights"},
        "INFO 10-05 09:12:41 [default_loader.py:267] Loading weights took 1312.44 seconds\n",
    ),
    # SGLang
    "sglang little left": (
        "sglang-server-info",
        {"little-left-activations-graphs"},
        "[2026-02-26 05:35:01 TP0] Load weight begin. avail mem=78.50 GB\n"
        "[2026-02-26 05:35:01 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16,"
        " avail mem=62.90 GB, mem usage=15.60 GB.\n"
        "[2026-02-26 05:35:08 TP0] KV Cache is allocated. #tokens: 471040, K size: 30.74 GB, V size:"
        " 30.74 GB\n"
        "[2026-02-26 05:35:08 TP0] Memory pool end. avail mem=1.02 GB\n"
        "[2026-02-26 05:35:08 TP0] Capture cuda graph begin. This can take up to several minutes."
        " avail mem=0.52 GB\n",
    ),
    "sglang enough": (
        "sglang-server-info",
        set(),
        "[2025-08-08 03:34:38] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail"
        " mem=13.91 GB, mem usage=1.25 GB.\n"
        "[2025-08-08 03:34:38] Memory pool end. avail mem=2.43 GB\n"
        "[2025-08-08 03:34:38] Capture cuda graph begin. This can take up to several minutes. avail"
        " mem=1.80 GB\n"
        "[2025-08-08 03:34:41] Capture cuda graph end. Time elapsed: 3.11 s. mem usage=0.21 GB. avail"
        " mem=1.59 GB.\n",
    ),
    "sglang weights fill the GPU": (
        "sglang-server-info",
        {"no-room-pool"},
        "[2025-08-08 03:34:38] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail"
        " mem=0.31 GB, mem usage=22.95 GB.\n",
    ),
    # llama.cpp and Ollama
    "llama.cpp on the CPU": (
        "llama-offload",
        {"no-gpu-found", "no-layer-gpu"},
        "warning: no usable GPU found, --gpu-layers option will be ignored\n"
        "warning: one possible reason is that llama.cpp was compiled without GPU support\n"
        "load_tensors: offloaded 0/33 layers to GPU\n",
    ),
    "llama.cpp in part": (
        "llama-offload",
        {"part-gpu"},
        "ggml_cuda_init: found 1 CUDA devices:\n"
        "  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes\n"
        "llm_load_tensors: offloaded 20/81 layers to GPU\n",
    ),
    "llama.cpp on the GPU": (
        "llama-offload",
        set(),
        "ggml_cuda_init: found 2 CUDA devices:\n"
        "0.00.400.111 I load_tensors: offloaded 33/33 layers to GPU\n",
    ),
    "llama.cpp without a device": (
        "llama-offload",
        {"no-gpu-found"},
        "ggml_cuda_init: failed to initialize CUDA: no CUDA-capable device is detected\n",
    ),
    "ollama on the CPU": (
        "llama-offload",
        {"no-layer-gpu"},
        "NAME         ID              SIZE      PROCESSOR    UNTIL\n"
        "llama3:8b    365c0bd3c000    5.4 GB    100% CPU     4 minutes from now\n",
    ),
    "ollama in part": (
        "llama-offload",
        {"part-gpu"},
        "NAME           ID              SIZE     PROCESSOR          CONTEXT    UNTIL\n"
        "qwen3:32b      030ee887880f    27 GB    48%/52% CPU/GPU    8192       4 minutes from now\n",
    ),
    "ollama on the GPU": (
        "llama-offload",
        set(),
        "NAME         ID              SIZE      PROCESSOR    UNTIL\n"
        "llama3:8b    365c0bd3c000    6.7 GB    100% GPU     Forever\n",
    ),
    "ollama finds no GPU": (
        "llama-offload",
        {"no-gpu-found"},
        'time=2025-02-06T17:24:31.452+08:00 level=INFO source=gpu.go:392 msg="no compatible GPUs were'
        ' discovered"\n'
        'time=2025-02-06T17:24:31.453+08:00 level=INFO source=types.go:131 msg="inference compute"'
        ' id=0 library=cpu variant=avx2 compute="" driver=0.0 name="" total="375.8 GiB"\n',
    ),
    # Triton
    "triton batches nothing, and requests wait": (
        "triton-stats",
        {"nothing-batched", "waits-longer-than-computed"},
        METRICS.format(executions=20537, queue=1501230011),
    ),
    "triton batches": ("triton-stats", set(), METRICS.format(executions=1857, queue=91230011)),
    "triton at a low load": ("triton-stats", set(), METRICS.format(executions=20537, queue=812344)),
    "triton statistics": (
        "triton-stats",
        {"nothing-batched", "waits-longer-than-computed"},
        STATS,
    ),
    "perf_analyzer without batches": (
        "triton-stats",
        {"nothing-batched", "waits-longer-than-computed"},
        "Request concurrency: 4\n  Client:\n    Request count: 567\n    Throughput: 113.4 infer/sec\n"
        "    Avg HTTP time: 35202 usec (send/recv 130 usec + response wait 35072 usec)\n"
        "  Server:\n    Inference count: 681\n    Execution count: 681\n    Successful request count:"
        " 681\n    Avg request latency: 34101 usec (overhead 20 usec + queue 25308 usec + compute input"
        " 156 usec + compute infer 8611 usec + compute output 6 usec)\n",
    ),
    "perf_analyzer of one request": (
        "triton-stats",
        set(),
        "Request concurrency: 1\n  Server:\n    Inference count: 353\n    Execution count: 353\n"
        "    Avg request latency: 50841 usec (overhead 20 usec + queue 63 usec + compute input 35 usec"
        " + compute infer 50663 usec + compute output 59 usec)\n",
    ),
    "pbtxt without batches": (
        "triton-config",
        {"no-dynamic-batching"},
        PBTXT.format(size=8),
    ),
    "pbtxt with batches": (
        "triton-config",
        set(),
        PBTXT.format(size=8)
        + "dynamic_batching { }\ninstance_group [\n  {\n    count: 2\n  }\n]\n",
    ),
    "pbtxt of an engine that batches itself": (
        "triton-config",
        set(),
        'name: "llm"\nbackend: "tensorrtllm"\nmax_batch_size: 64\nmodel_transaction_policy {\n'
        "  decoupled: true\n}\n",
    ),
    # nvidia-smi --query-gpu
    "gpu rows with a host": (
        "nvidia-smi-query-gpu",
        {"slow-gpu-sets-pace"},
        "gpu05: 0, 1785 MHz, 655 W, 61\ngpu05: 1, 1770 MHz, 661 W, 60\n"
        "gpu05: 4, 345 MHz, 148 W, 52\ngpu05: 5, 1785 MHz, 650 W, 63\n",
    ),
    "gpu rows with other columns": (
        "nvidia-smi-query-gpu",
        {"slow-gpu-sets-pace"},
        GPUS
        + "0, NVIDIA H100 80GB HBM3, 1785 MHz, 655.21 W, 61, 99 %\n"
        + "1, NVIDIA H100 80GB HBM3, 1770 MHz, 661.07 W, 60, 99 %\n"
        + "2, NVIDIA H100 80GB HBM3, 345 MHz, 301.00 W, 64, 99 %\n",
    ),
    "gpu rows without units": (
        "nvidia-smi-query-gpu",
        {"slow-gpu-sets-pace"},
        "name, clocks.sm, clocks.mem, utilization.gpu\n"
        "NVIDIA A100-SXM4-80GB, 1410, 1593, 100\nNVIDIA A100-SXM4-80GB, 1410, 1593, 100\n"
        "NVIDIA A100-SXM4-80GB, 765, 1593, 100\n",
    ),
    "gpu rows that are alike": (
        "nvidia-smi-query-gpu",
        set(),
        "utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
        "99 %, 70112 MiB, 81559 MiB\n98 %, 70110 MiB, 81559 MiB\n99 %, 70112 MiB, 81559 MiB\n",
    ),
    "gpu rows with a time": (
        "nvidia-smi-query-gpu",
        set(),
        "timestamp, name, utilization.gpu [%], clocks.current.sm [MHz]\n"
        "2026/03/05 10:11:02.123, NVIDIA H100 80GB HBM3, 99 %, 1785 MHz\n"
        "2026/03/05 10:11:02.125, NVIDIA H100 80GB HBM3, 99 %, 1770 MHz\n",
    ),
    "gpu rows of an idle GPU": (
        "nvidia-smi-query-gpu",
        set(),
        GPUS
        + "0, NVIDIA H100 80GB HBM3, 1785 MHz, 655.21 W, 61, 99 %\n"
        + "1, NVIDIA H100 80GB HBM3, 1770 MHz, 661.07 W, 60, 99 %\n"
        + "2, NVIDIA H100 80GB HBM3, 345 MHz, 71.00 W, 34, 0 %\n",
    ),
    "gpu memory though nobody runs": (
        "nvidia-smi-query-gpu",
        {"memory-held-idle"},
        "index, memory.used [MiB], utilization.gpu [%]\n"
        "0, 4 MiB, 0 %\n1, 4 MiB, 0 %\n2, 61233 MiB, 0 %\n3, 4 MiB, 0 %\n",
    ),
    "gpu reasons in words": (
        "nvidia-smi-query-gpu",
        {"bits-0x1-idle-0x2"},
        "index, clocks_throttle_reasons.hw_slowdown, clocks_throttle_reasons.sw_power_cap,"
        " clocks_throttle_reasons.hw_thermal_slowdown\n"
        "0, Not Active, Active, Not Active\n1, Active, Not Active, Active\n",
    ),
    "gpu lost": (
        "nvidia-smi-query-gpu",
        {"gpu-lost"},
        "index, name, temperature.gpu, power.draw [W]\n"
        "0, NVIDIA H100 80GB HBM3, 34, 71.22 W\n1, [GPU is lost], [GPU is lost], [GPU is lost]\n",
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_an_output_is_read_in_the_form_that_is_pasted(name: str, knowledge: KnowledgeBase) -> None:
    check, findings, text = SAMPLES[name]
    names, seen = outputs_of(text, knowledge)
    assert check in names
    alarms = [one for one in seen if one.abnormal is not False]
    assert {one.finding for one in alarms if one.check == check} == findings
    assert {one.check for one in alarms} <= {check}, [one.text for one in alarms]
