//! The few helpers that every system-call module shares.
use nix::libc;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Turns the C convention (-1 and errno) into a `Result`.
pub(crate) fn check(ret: libc::c_int) -> io::Result<libc::c_int> {
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(ret) }
}

/// The first number in a file of /proc or /sys, if it can be read.
pub(crate) fn read_number(path: &str) -> Option<i64> {
    std::fs::read_to_string(path).ok()?.split_whitespace().next()?.parse().ok()
}

/// Interface names are at most 15 bytes and a terminating zero in every ioctl.
pub(crate) fn interface_name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("interface name {name:?} must have 1 to {} bytes", libc::IFNAMSIZ - 1),
        ));
    }
    let mut out = [0; libc::IFNAMSIZ];
    for (to, from) in out.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(out)
}

/// A socket for interface ioctls in the calling thread's namespace.
fn control_socket(domain: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the descriptor is fresh and owned by nobody else.
    unsafe {
        let fd = check(libc::socket(domain, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// An `ifreq` for the interface, its union zeroed.
pub(crate) fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: a plain C struct of integers and arrays; all zeroes are valid.
    let mut req: libc::ifreq = unsafe { std::mem::zeroed() };
    req.ifr_name = interface_name(name)?;
    Ok(req)
}

/// An interface ioctl in the calling thread's namespace.
///
/// # Safety
/// `arg` must be the type that the kernel expects for `code`.
pub(crate) unsafe fn interface_ioctl<T>(
    domain: libc::c_int,
    code: libc::c_ulong,
    arg: &mut T,
) -> io::Result<()> {
    let socket = control_socket(domain)?;
    // SAFETY: `arg` is valid for reading and writing; its type is the caller's promise.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), code as _, std::ptr::from_mut(arg)) })?;
    Ok(())
}

/// The system's setting that forbids user namespaces, if one can be found.
pub(crate) fn user_namespace_remedy() -> &'static str {
    let is = |path: &str, value: i64| read_number(path) == Some(value);
    if is("/proc/sys/user/max_user_namespaces", 0) {
        "run as root, or set user.max_user_namespaces above 0 with sysctl"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", 0) {
        "run as root, or set kernel.unprivileged_userns_clone=1 with sysctl"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1) {
        "run as root, or set kernel.apparmor_restrict_unprivileged_userns=0 with sysctl"
    } else {
        "run as root, or in a container that permits user namespaces (CAP_SYS_ADMIN)"
    }
}
