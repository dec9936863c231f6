//! Control messages (cmsg(3)): per-packet options on their way out, kernel facts on their way in.
use nix::libc;
use std::mem::{size_of, zeroed};

/// Room for every control message that this crate asks for at once: three timestamps, packet info, TOS, hop limit,
/// and in the error queue the extended error with the offender's address.
const WORDS: usize = 32;

/// An aligned buffer of control messages.
#[derive(Clone, Copy)]
pub(super) struct Control {
    words: [u64; WORDS],
    len: usize,
}

/// Types that the kernel copies into control messages: any bytes are a valid value.
///
/// # Safety
/// Implement only for plain C data without padding-dependent meaning, references or niches.
pub(super) unsafe trait Plain: Copy {}
// SAFETY: integers and C structs of integers; all bit patterns are valid.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for libc::c_int {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for libc::in_pktinfo {}
// SAFETY: as above.
unsafe impl Plain for libc::in6_pktinfo {}
// SAFETY: as above.
unsafe impl Plain for [libc::timespec; 3] {}
// SAFETY: as above.
unsafe impl Plain for libc::sock_extended_err {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_in {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_in6 {}

/// The first bytes of `data` as a `T`, if there are enough.
pub(super) fn plain<T: Plain>(data: &[u8]) -> Option<T> {
    // SAFETY: the length is checked, `read_unaligned` needs no alignment, and any bytes are a valid `T: Plain`.
    (data.len() >= size_of::<T>()).then(|| unsafe { data.as_ptr().cast::<T>().read_unaligned() })
}

impl Control {
    pub(super) const EMPTY: Self = Self { words: [0; WORDS], len: 0 };

    /// Bytes in use: `msg_controllen` when sending.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of the whole buffer: `msg_controllen` when receiving.
    pub(super) fn capacity(&self) -> usize {
        size_of::<[u64; WORDS]>()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.words.as_mut_ptr().cast()
    }

    /// Appends one message. The buffer has room for all that this crate sends; more would be a programming error
    /// and panics.
    pub(super) fn push<T: Plain>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        // SAFETY: CMSG_SPACE and CMSG_LEN only compute.
        let (space, len) = unsafe {
            let size = size_of::<T>() as u32;
            (libc::CMSG_SPACE(size) as usize, libc::CMSG_LEN(size) as usize)
        };
        assert!(self.len + space <= self.capacity(), "control buffer too small");
        // SAFETY: `space` bytes from `len` lie inside `words` (asserted); `words` and CMSG_SPACE keep the 8-byte
        // alignment of `cmsghdr`; the data follow the header inside the same space.
        unsafe {
            let header = self.words.as_mut_ptr().cast::<u8>().add(self.len).cast::<libc::cmsghdr>();
            let mut h: libc::cmsghdr = zeroed();
            h.cmsg_len = len as _;
            h.cmsg_level = level;
            h.cmsg_type = kind;
            header.write(h);
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
        self.len += space;
    }
}

/// Calls `f` with level, type and data of each control message that the kernel wrote for `msg`.
///
/// # Safety
/// `msg.msg_control` must point to `msg.msg_controllen` initialised bytes, aligned for `cmsghdr`, that stay
/// untouched during the call.
pub(super) unsafe fn each(msg: &libc::msghdr, mut f: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
    // SAFETY: the caller vouches for the buffer; CMSG_FIRSTHDR and CMSG_NXTHDR stay within it.
    unsafe {
        let end = msg.msg_control as usize + msg.msg_controllen;
        let mut header = libc::CMSG_FIRSTHDR(msg);
        while !header.is_null() {
            let data = libc::CMSG_DATA(header);
            let said = ((*header).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
            let len = said.min(end.saturating_sub(data as usize));
            f((*header).cmsg_level, (*header).cmsg_type, std::slice::from_raw_parts(data, len));
            header = libc::CMSG_NXTHDR(msg, header);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_read_back_in_order() {
        let mut c = Control::EMPTY;
        c.push(1, 2, 0x1234_5678u32);
        c.push(3, 4, 0xa5u8);
        c.push(
            5,
            6,
            libc::in_pktinfo {
                ipi_ifindex: 7,
                ipi_spec_dst: libc::in_addr { s_addr: 8 },
                ipi_addr: libc::in_addr { s_addr: 9 },
            },
        );
        // SAFETY: an all-zero `msghdr` is valid: null pointers and zero lengths.
        let mut msg: libc::msghdr = unsafe { zeroed() };
        msg.msg_control = c.as_mut_ptr();
        msg.msg_controllen = c.len() as _;
        let mut seen = Vec::new();
        // SAFETY: `c` holds `len` initialised, aligned bytes and is not touched meanwhile.
        unsafe { each(&msg, |level, kind, data| seen.push((level, kind, data.to_vec()))) };
        assert_eq!(seen.len(), 3);
        assert_eq!(plain::<u32>(&seen[0].2), Some(0x1234_5678));
        assert_eq!((seen[1].0, seen[1].1, seen[1].2.as_slice()), (3, 4, &[0xa5u8][..]));
        assert_eq!(plain::<libc::in_pktinfo>(&seen[2].2).map(|i| i.ipi_addr.s_addr), Some(9));
        assert_eq!(plain::<u32>(&[1, 2, 3]), None);
    }
}
