"""Host memory: the machine's, or what a control group leaves of it."""

from needle.devices.memory import host_memory

GIB = 1 << 30


def test_without_a_limit_the_machine_counts(machine):
    memory = host_memory(machine.root)
    assert (memory.total_bytes, memory.available_bytes, memory.used_bytes) == (64 * GIB, 48 * GIB, 16 * GIB)
    assert memory.limit_source == "machine"


def version_two(machine, group, limit, used, inactive=0):
    machine.write(f"sys/fs/cgroup{group}/memory.max", f"{limit}\n")
    machine.write(f"sys/fs/cgroup{group}/memory.current", f"{used}\n")
    machine.write(f"sys/fs/cgroup{group}/memory.stat", f"anon 1\ninactive_file {inactive}\n")


def test_version_two_limit_counts_and_reclaimable_cache_is_free(machine):
    machine.write("proc/self/cgroup", "0::/job\n")
    version_two(machine, "/job", 8 * GIB, 6 * GIB, inactive=2 * GIB)
    memory = host_memory(machine.root)
    assert (memory.total_bytes, memory.available_bytes, memory.used_bytes) == (8 * GIB, 4 * GIB, 4 * GIB)
    assert memory.machine_bytes == 64 * GIB
    assert "/sys/fs/cgroup/job/memory.max" in memory.limit_source


def test_a_parent_group_that_is_tighter_counts(machine):
    machine.write("proc/self/cgroup", "0::/slice/job\n")
    version_two(machine, "/slice/job", "max", 1 * GIB)
    version_two(machine, "/slice", 4 * GIB, 3 * GIB)
    memory = host_memory(machine.root)
    assert (memory.total_bytes, memory.available_bytes) == (4 * GIB, 1 * GIB)


def test_a_full_parent_leaves_nothing_even_below_a_smaller_child(machine):
    machine.write("proc/self/cgroup", "0::/slice/job\n")
    version_two(machine, "/slice/job", 4 * GIB, 1 * GIB)
    version_two(machine, "/slice", 8 * GIB, 8 * GIB)
    assert host_memory(machine.root).available_bytes == 0


def test_inside_a_container_the_root_of_the_mount_counts(machine):
    machine.write("proc/self/cgroup", "0::/\n")
    version_two(machine, "", 2 * GIB, 1 * GIB)
    assert host_memory(machine.root).total_bytes == 2 * GIB


def test_version_one_limit_of_the_containers_mount_is_found_under_the_hosts_path(machine):
    machine.write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n1:name=systemd:/x\n")
    machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", f"{3 * GIB}\n")
    machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", f"{2 * GIB}\n")
    machine.write("sys/fs/cgroup/memory/memory.stat", f"cache 1\ntotal_inactive_file {GIB}\n")
    memory = host_memory(machine.root)
    assert (memory.total_bytes, memory.available_bytes) == (3 * GIB, 2 * GIB)


def test_version_ones_number_for_no_limit_is_no_limit(machine):
    machine.write("proc/self/cgroup", "4:memory:/job\n")
    machine.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n")
    assert host_memory(machine.root).limit_source == "machine"


def test_a_limit_above_the_machine_is_no_limit(machine):
    machine.write("proc/self/cgroup", "0::/job\n")
    version_two(machine, "/job", 640 * GIB, GIB)
    assert host_memory(machine.root).limit_source == "machine"


def test_a_path_that_leaves_the_mount_is_not_followed(machine):
    machine.write("proc/self/cgroup", "0::/../../elsewhere\n")
    machine.write("elsewhere/memory.max", "1\n")
    assert host_memory(machine.root).limit_source == "machine"


def test_what_is_available_never_exceeds_what_the_machine_has_left(machine):
    machine.write("proc/meminfo", f"MemTotal: {64 * GIB // 1024} kB\nMemAvailable: {1 * GIB // 1024} kB\n")
    machine.write("proc/self/cgroup", "0::/job\n")
    version_two(machine, "/job", 8 * GIB, 1 * GIB)
    assert host_memory(machine.root).available_bytes == 1 * GIB


def test_this_machine_tells_its_memory():
    memory = host_memory()
    assert 0 < memory.available_bytes <= memory.total_bytes <= memory.machine_bytes
