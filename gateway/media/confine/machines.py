"""System call numbers of the machines whose filter we can write. Pure.

Sources: Linux 6.1 arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h (aarch64), compared with
this system's headers by the tests. A call that a machine lacks has a dash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Linux 6.1 ends with 450; newer calls are unknown to the rules.
FIRST_UNKNOWN = 451

# Name, number on x86_64, number on aarch64.
_TABLE = """
accept 43 202 | accept4 288 242 | acct 163 89 | add_key 248 217 | adjtimex 159 171 | bind 49 200 | bpf 321 280
brk 12 214 | capset 126 91 | chroot 161 51 | clock_adjtime 305 266 | clock_getres 229 114
clock_gettime 228 113 | clock_nanosleep 230 115 | clock_settime 227 112 | clone 56 220 | clone3 435 435
close 3 57 | connect 42 203 | delete_module 176 106 | execve 59 221 | execveat 322 281 | exit 60 93
exit_group 231 94 | fanotify_init 300 262 | fcntl 72 25 | finit_module 313 273 | fork 57 - | fsmount 432 432
fsopen 430 430 | fstat 5 80 | futex 202 98 | getcpu 309 168 | getegid 108 177 | geteuid 107 175 | getgid 104 176
getpid 39 172 | getppid 110 173 | getrandom 318 278 | getrlimit 97 163 | getrusage 98 165 | gettid 186 178
gettimeofday 96 169 | getuid 102 174 | init_module 175 105 | io_setup 206 0 | io_uring_enter 426 426
io_uring_register 427 427 | io_uring_setup 425 425 | ioperm 173 - | iopl 172 - | kexec_file_load 320 294
kexec_load 246 104 | keyctl 250 219 | kill 62 129 | landlock_create_ruleset 444 444
landlock_restrict_self 446 446 | listen 50 201 | lseek 8 62 | madvise 28 233 | membarrier 324 283
memfd_create 319 279 | memfd_secret 447 447 | mknod 133 - | mknodat 259 33 | mmap 9 222 | modify_ldt 154 -
mount 165 40 | mount_setattr 442 442 | move_mount 429 429 | mprotect 10 226 | mq_open 240 180 | mremap 25 216
msgget 68 186 | munmap 11 215 | nanosleep 35 101 | newfstatat 262 79 | open_by_handle_at 304 265
open_tree 428 428 | perf_event_open 298 241 | personality 135 92 | pidfd_getfd 438 438 | pidfd_open 434 434
pidfd_send_signal 424 424 | pivot_root 155 41 | prctl 157 167 | pread64 17 67 | prlimit64 302 261
process_madvise 440 440 | process_mrelease 448 448 | process_vm_readv 310 270 | process_vm_writev 311 271
ptrace 101 117 | quotactl 179 60 | read 0 63 | readv 19 65 | reboot 169 142 | recvfrom 45 207
request_key 249 218 | restart_syscall 219 128 | rseq 334 293 | rt_sigaction 13 134 | rt_sigprocmask 14 135
rt_sigqueueinfo 129 138 | rt_sigreturn 15 139 | rt_tgsigqueueinfo 297 240 | sched_getaffinity 204 123
sched_yield 24 124 | seccomp 317 277 | semget 64 190 | sendmmsg 307 269 | sendmsg 46 211 | sendto 44 206
set_robust_list 273 99 | setdomainname 171 162 | setfsgid 123 152 | setfsuid 122 151 | setgid 106 144
setgroups 116 159 | sethostname 170 161 | setns 308 268 | setregid 114 143 | setresgid 119 149
setresuid 117 147 | setreuid 113 145 | settimeofday 164 170 | setuid 105 146 | shmat 30 196 | shmget 29 194
sigaltstack 131 132 | socket 41 198 | swapoff 168 225 | swapon 167 224 | sysinfo 99 179 | syslog 103 116
tgkill 234 131 | time 201 - | times 100 153 | tkill 200 130 | umount2 166 39 | uname 63 160 | unshare 272 97
userfaultfd 323 282 | vfork 58 - | write 1 64 | writev 20 66
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """``audit_arch`` as linux/audit.h has it; ``foreign`` is where another calling convention's numbers begin."""

    audit_arch: int
    numbers: Mapping[str, int]
    foreign: int | None = None


def _column(index: int) -> Mapping[str, int]:
    entries = (entry.split() for line in _TABLE.split("\n") for entry in line.split("|") if entry)
    return {entry[0]: int(entry[index]) for entry in entries if entry[index] != "-"}


# AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64; calls by the x32 convention carry bit 30.
MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(0xC000_003E, _column(1), foreign=0x4000_0000),
    "aarch64": Machine(0xC000_00B7, _column(2)),
}
