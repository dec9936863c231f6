//! SRTP on the command line: its key, and packets that do not have it.

use std::path::PathBuf;

use anyhow::anyhow;
use lastmile::wire::sdes::{MasterKey, NoKey, Suite};
use lastmile_net::driver::Driver;

use crate::shell::exit::Exit;
use crate::shell::network::{random_seed, read_secret};

/// Variable with the key, so that it is in no list of processes.
pub(crate) const VARIABLE: &str = "LASTMILE_SRTP_KEY";

/// Protection of the media.
#[derive(clap::Args)]
pub(crate) struct SecurityArgs {
    /// File with the key of SRTP that both ends share; else the variable LASTMILE_SRTP_KEY has it
    #[arg(long, value_name = "FILE", help_heading = "SRTP")]
    key_file: Option<PathBuf>,
    /// Make a key, for AES-128-GCM (AEAD_AES_128_GCM) rather than AES_CM_128_HMAC_SHA1_80
    #[arg(long, conflicts_with_all = ["key_file", "plain"], help_heading = "SRTP")]
    gcm: bool,
    /// Plain RTP, without SRTP
    #[arg(long, conflicts_with = "key_file", help_heading = "SRTP")]
    plain: bool,
}

impl SecurityArgs {
    /// True if plain RTP is asked for.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// True if a file has the key.
    pub(crate) fn has_file(&self) -> bool {
        self.key_file.is_some()
    }

    /// True if a key is to be made.
    pub(crate) fn makes(&self) -> bool {
        self.gcm
    }

    /// The key that is given, in the file or in the variable; none where plain RTP or another key is asked for.
    pub(crate) fn key(&self) -> anyhow::Result<Option<MasterKey>> {
        if self.plain || self.gcm {
            return Ok(None);
        }
        let (text, place) = match (&self.key_file, std::env::var(VARIABLE)) {
            (Some(file), _) => {
                (String::from_utf8_lossy(&read_secret(file)?).into_owned(), file.display().to_string())
            }
            (None, Ok(text)) => (text, VARIABLE.to_owned()),
            (None, Err(_)) => return Ok(None),
        };
        let key = text.trim().parse();
        key.map(Some).map_err(|error: NoKey| Exit::Usage.blame(anyhow!("{place}: {error}")))
    }

    /// The key of a sender: real video has one unless plain RTP is asked for, a new one if its description tells it.
    pub(crate) fn of_sender(&self, is_video: bool, is_described: bool) -> anyhow::Result<Option<MasterKey>> {
        match self.key()? {
            _ if self.gcm && !is_described => Err(Exit::Usage.blame(anyhow!(
                "--gcm makes a key, which the receiver has to get: it is for --sdp here, and for `lastmile receive`"
            ))),
            None if is_video && !self.plain && is_described => self.made().map(Some),
            None if is_video && !self.plain => Err(Exit::Usage.blame(anyhow!(
                "real video is sent as SRTP and has no key: take the line that `lastmile receive` prints, --key-file or {VARIABLE}, or \
                 --plain for plain RTP"
            ))),
            key => Ok(key),
        }
    }

    /// A key that nobody can guess.
    pub(crate) fn made(&self) -> anyhow::Result<MasterKey> {
        let suite = if self.gcm { Suite::AeadAes128Gcm } else { Suite::AesCm128HmacSha1_80 };
        MasterKey::new(suite, &random_seed()?).ok_or_else(|| anyhow!("{NoKey}"))
    }
}

/// Packets that a guarded driver dropped: those without the key, and those that had come before.
pub(crate) type Dropped = Box<dyn Fn() -> (u64, u64)>;

/// Has a driver's packets protected by that key; `whose` names packets that come.
#[cfg(feature = "video")]
pub(crate) fn guard(driver: &mut Driver, key: MasterKey, whose: &'static str) -> anyhow::Result<Dropped> {
    let told = move |from: std::net::SocketAddr| {
        crate::shell::note(&format!(
            "{whose} from {from} do not have the key of SRTP: it has another key or sends plain RTP, or they were changed on the way; \
             they are dropped"
        ));
    };
    let srtp = lastmile_net::srtp::Srtp::new(key, told).map_err(|error| Exit::Machine.blame(error))?;
    let rejected = srtp.rejected();
    driver.guard(Box::new(srtp));
    Ok(Box::new(move || (rejected.get().unauthentic, rejected.get().replayed)))
}

#[cfg(not(feature = "video"))]
pub(crate) fn guard(_: &mut Driver, _: MasterKey, _: &'static str) -> anyhow::Result<Dropped> {
    Err(super::video::refused("a key of SRTP"))
}
