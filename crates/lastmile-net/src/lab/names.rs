//! Hosts by their names: programs in a host find the others in `/etc/hosts`, and their own by `hostname`.

use std::fs;
use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::sethostname;

use super::{LabError, NetNs};

const HOSTS: &str = "/etc/hosts";
/// The system's longest name of a host.
const LONGEST: usize = 64;

/// Gives a host a name of its own, and `lines` before those of the system's `/etc/hosts`; a system without that file has none
/// in the host either. Nothing of it is seen outside of the host or stays behind.
pub(super) fn give(host: &NetNs, lines: &str) -> Result<(), LabError> {
    let own: String = host.name().chars().take(LONGEST).collect();
    let lines = lines.to_owned();
    host.step("naming the hosts", move || {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)?;
        sethostname(own)?;
        let Ok(before) = fs::read(HOSTS) else { return Ok(()) };
        let nothing = None::<&str>;
        mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)?;
        // A file that is in no directory of this machine.
        let room = std::env::temp_dir();
        mount(nothing, &room, Some("tmpfs"), MsFlags::empty(), nothing)?;
        let file = room.join("hosts");
        fs::write(&file, [lines.as_bytes(), &before].concat())?;
        mount(Some(&file), Path::new(HOSTS), nothing, MsFlags::MS_BIND, nothing)?;
        umount2(&room, MntFlags::MNT_DETACH)?;
        Ok(())
    })
}
