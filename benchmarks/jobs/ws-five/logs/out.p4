#0001 argv a.py --solver als --rank-config auto
#0002 env WORLD_SIZE=5 RANK=4 MASTER_PORT=31007
#0003 calibration 1/45 cond 101.4
#0004 calibration 3/45 cond 52.7
#0005 calibration 5/45 cond 68.3
#0006 calibration 7/45 cond 46.0
#0007 calibration 9/45 cond 50.8
#0008 calibration 11/45 cond 611.9
#0009 calibration 13/45 cond 51.8
#0010 calibration 15/45 cond 551.4
#0011 calibration 17/45 cond 126.2
#0012 calibration 19/45 cond 52.2
#0013 calibration 21/45 cond 92.7
#0014 calibration 23/45 cond 39.2
#0015 calibration 25/45 cond 126.1
#0016 calibration 27/45 cond 83.5
#0017 calibration 29/45 cond 137.9
#0018 calibration 31/45 cond 79.2
#0019 calibration 33/45 cond 56.5
#0020 calibration 35/45 cond 96.1
#0021 calibration 37/45 cond 44.9
#0022 calibration 39/45 cond 87.3
#0023 calibration 41/45 cond 67.1
#0024 calibration 43/45 cond 88.8
#0025 rendezvous
[W1121 10:52:31.522739820 socket.cpp:207] [c10d] The hostname of the client socket cannot be retrieved. err=-3
#0026 group of 5 up
#0027 iter 0 parts 5 sum 0
[rank4]: Traceback (most recent call last):
[rank4]:   File "/opt/als/a.py", line 16, in <module>
[rank4]:     o = [torch.zeros(4) for _ in range(dist.get_world_size())]; dist.all_gather(o, torch.full((4,), float(k))); D(f"iter {k} parts {len(o)} sum {sum(t.sum().item() for t in o):g}") if k > 2 or k == 0 else None
[rank4]:                                                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
[rank4]:   File "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", line 83, in wrapper
[rank4]:     return func(*args, **kwargs)
[rank4]:            ^^^^^^^^^^^^^^^^^^^^^
[rank4]:   File "/opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 4287, in all_gather
[rank4]:     work.wait()
[rank4]: RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 12000ms for recv operation to complete
