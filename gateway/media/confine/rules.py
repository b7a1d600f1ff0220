"""Which system calls a worker may still make once the box is closed. Pure.

Allowed is what the interpreter and the decoders do with memory, threads, time and the descriptors they hold. What only
an intruder asks for ends the process, so that a probing one is seen (``pool_restarts_total{reason="forbidden"}``). All
else, above all opening files, is refused with EPERM: a library may ask and must cope. Calls newer than the table are
answered as an old kernel would.
"""

from __future__ import annotations

from gateway.media.confine.bpf import Action, Clause, Filter, Rule
from gateway.media.confine.machines import FIRST_UNKNOWN, Machine

# The most frequent first; only kernels before 5.11 walk the list.
_ALLOWED = """
    futex madvise munmap recvfrom sendto clock_gettime pread64 mremap brk read write readv writev lseek close fstat
    rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall sched_yield sched_getaffinity getpid gettid
    getppid getuid geteuid getgid getegid clock_getres clock_nanosleep nanosleep gettimeofday time times getrusage
    getrlimit getrandom uname sysinfo getcpu set_robust_list rseq membarrier exit exit_group
"""

_KILLED = """
    execve execveat fork vfork socket connect bind listen accept accept4 sendmsg sendmmsg
    ptrace process_vm_readv process_vm_writev process_madvise process_mrelease
    pidfd_open pidfd_getfd pidfd_send_signal tkill rt_sigqueueinfo rt_tgsigqueueinfo
    keyctl add_key request_key bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register io_setup
    mount umount2 move_mount fsopen fsmount open_tree mount_setattr pivot_root chroot setns unshare
    init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff quotactl acct syslog
    memfd_create memfd_secret open_by_handle_at shmget shmat msgget semget mq_open mknod mknodat fanotify_init
    personality iopl ioperm modify_ldt sethostname setdomainname settimeofday clock_settime clock_adjtime adjtimex
    setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset
"""

_PROT_EXEC, _MAP_SHARED = 0x4, 0x1
# CLONE_VM | CLONE_SIGHAND | CLONE_THREAD: a thread, and no namespace beside it (CLONE_NEW*).
_THREAD = 0x100 | 0x800 | 0x1_0000
_NEW_NAMESPACES = 0x7E02_0080
_AT_EMPTY_PATH = 0x1000
_PR_SET_NAME, _PR_GET_NAME, _PR_SET_VMA = 15, 16, 0x5356_4D41
_F_GETFD, _F_SETFD, _F_GETFL = 1, 2, 3  # F_SETOWN could aim signals at other processes
_NO_POINTER = (Clause(2, (0,)), Clause(2, (0,), high=True))


def worker_filter(machine: Machine, pid: int) -> Filter:
    """The filter of the worker that is process ``pid``."""
    itself = Clause(0, (pid,))
    not_executable = (Clause(2, (0,), mask=_PROT_EXEC),)
    private = Clause(3, (0,), mask=_MAP_SHARED)  # shared memory would not count as the worker's own
    by_argument = {
        "mmap": ((*not_executable, private), Action.DENY),
        "mprotect": (not_executable, Action.DENY),
        "clone": ((Clause(0, (_THREAD,), mask=_THREAD | _NEW_NAMESPACES),), Action.KILL),
        "kill": ((itself,), Action.KILL),
        "tgkill": ((itself,), Action.KILL),
        "prctl": ((Clause(0, (_PR_SET_NAME, _PR_GET_NAME, _PR_SET_VMA)),), Action.DENY),
        "fcntl": ((Clause(1, (_F_GETFD, _F_SETFD, _F_GETFL)),), Action.DENY),
        "prlimit64": ((Clause(0, (0, pid)), *_NO_POINTER), Action.DENY),
        "newfstatat": ((Clause(3, (_AT_EMPTY_PATH,), mask=_AT_EMPTY_PATH),), Action.DENY),
    }
    numbers = machine.numbers
    rules = [Rule(numbers[name], Action.ALLOW) for name in _ALLOWED.split() if name in numbers]
    rules += [Rule(numbers[name], Action.ALLOW, *decision) for name, decision in by_argument.items()]
    rules.append(Rule(numbers["clone3"], Action.ABSENT))  # its flags lie in memory, where a filter cannot look
    rules += [Rule(numbers[name], Action.KILL) for name in _KILLED.split() if name in numbers]
    return Filter(machine.audit_arch, tuple(rules), FIRST_UNKNOWN, machine.foreign)
