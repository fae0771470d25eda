/** Numbers of the kernel's interface that more than one file needs: the generic Linux ABI. */
export const O_NONBLOCK = 0o4000;
export const O_CLOEXEC = 0o2000000;
export const F_DUPFD_CLOEXEC = 1030;
export const EPOLL_CTL_ADD = 1;

export const AF_UNIX = 1;
export const SOCK_STREAM = 1;
export const SOCK_DGRAM = 2;
export const MSG_PEEK = 2;
export const MSG_DONTWAIT = 0x40;
export const MSG_NOSIGNAL = 0x4000;

export const SOL_SOCKET = 1;
export const SO_BINDTODEVICE = 25;
export const SO_MARK = 36;
export const IPV6_V6ONLY = 26;
