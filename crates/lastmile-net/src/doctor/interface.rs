//! Effects of a network interface on the timing of packets, asked of its driver.
use crate::sys::{interface_ioctl, request};
use nix::libc;
use std::io;

/// linux/sockios.h
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// linux/ethtool.h: commands and the flag of LRO among the legacy flags.
const ETHTOOL_GCOALESCE: u32 = 0x0e;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const ETH_FLAG_LRO: u32 = 1 << 15;

/// Facts about one interface. `None` is "the driver does not say", as loopback and many virtual devices do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// The interface's name.
    pub name: String,
    /// Largest IP packet, bytes.
    pub mtu: Option<u32>,
    /// Generic receive offload is on: packets of one flow may be merged before they are stamped for the socket.
    pub gro: Option<bool>,
    /// Large receive offload is on: the device itself merges packets.
    pub lro: Option<bool>,
    /// Longest wait of the device before it reports a received packet, in microseconds.
    pub rx_usecs: Option<u32>,
    /// Packets that the device may gather before it reports them.
    pub rx_frames: Option<u32>,
    /// The device chooses the two itself.
    pub adaptive_rx: Option<bool>,
    /// The driver makes software transmit stamps.
    pub tx_stamps: Option<bool>,
}

/// `struct ethtool_value`.
#[repr(C)]
#[derive(Default)]
struct Value {
    cmd: u32,
    data: u32,
}

/// `struct ethtool_coalesce`: 23 words. Used here: the first three, and `use_adaptive_rx_coalesce`.
#[repr(C)]
#[derive(Default)]
struct Coalesce {
    cmd: u32,
    rx_usecs: u32,
    rx_frames: u32,
    _irq_and_tx: [u32; 7],
    _stats: u32,
    adaptive_rx: u32,
    _rest: [u32; 11],
}

/// `struct ethtool_ts_info`: 11 words.
#[repr(C)]
#[derive(Default)]
struct TsInfo {
    cmd: u32,
    so_timestamping: u32,
    _rest: [u32; 9],
}

/// An ethtool request. `T` begins with the command, which fixes the bytes that the kernel reads and writes.
///
/// # Safety
/// `T` must be the C struct that belongs to its command.
unsafe fn ask<T>(name: &str, mut value: T) -> io::Result<T> {
    let mut req = request(name)?;
    req.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: SIOCETHTOOL takes an `ifreq` that points to the command's struct, which outlives the call.
    unsafe { interface_ioctl(libc::AF_INET, SIOCETHTOOL, &mut req)? };
    Ok(value)
}

fn flag(name: &str, cmd: u32) -> Option<u32> {
    // SAFETY: the commands of this function's callers take an `ethtool_value`.
    unsafe { ask(name, Value { cmd, data: 0 }) }.ok().map(|v| v.data)
}

impl InterfaceFacts {
    /// Asks the driver of `name`, in the calling thread's namespace.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn of(name: &str) -> io::Result<Self> {
        let mut req = request(name)?;
        // SAFETY: SIOCGIFMTU takes an `ifreq` and fills `ifru_mtu`.
        let mtu = unsafe {
            interface_ioctl(libc::AF_INET, libc::SIOCGIFMTU, &mut req)?;
            req.ifr_ifru.ifru_mtu
        };
        // SAFETY: ETHTOOL_GCOALESCE takes an `ethtool_coalesce`.
        let coalesce = unsafe { ask(name, Coalesce { cmd: ETHTOOL_GCOALESCE, ..Default::default() }) }.ok();
        // SAFETY: ETHTOOL_GET_TS_INFO takes an `ethtool_ts_info`.
        let stamps = unsafe { ask(name, TsInfo { cmd: ETHTOOL_GET_TS_INFO, ..Default::default() }) }.ok();
        Ok(Self {
            name: name.to_owned(),
            mtu: u32::try_from(mtu).ok(),
            gro: flag(name, ETHTOOL_GGRO).map(|v| v != 0),
            lro: flag(name, ETHTOOL_GFLAGS).map(|v| v & ETH_FLAG_LRO != 0),
            rx_usecs: coalesce.as_ref().map(|c| c.rx_usecs),
            rx_frames: coalesce.as_ref().map(|c| c.rx_frames),
            adaptive_rx: coalesce.as_ref().map(|c| c.adaptive_rx != 0),
            tx_stamps: stamps.map(|s| s.so_timestamping & libc::SOF_TIMESTAMPING_TX_SOFTWARE != 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_kernels() {
        assert_eq!((size_of::<Value>(), size_of::<Coalesce>(), size_of::<TsInfo>()), (8, 92, 44));
    }

    #[test]
    fn loopback_answers_and_strangers_do_not() {
        let lo = InterfaceFacts::of("lo").expect("loopback");
        assert!(lo.mtu.is_some_and(|m| m >= 1500), "{lo:?}");
        assert_eq!((lo.rx_usecs, lo.adaptive_rx), (None, None), "loopback has no interrupts");
        assert_ne!(lo.tx_stamps, Some(false));
        assert!(InterfaceFacts::of("nosuchif0").is_err());
    }
}
