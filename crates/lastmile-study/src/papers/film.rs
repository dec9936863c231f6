//! [`Film`]: real video in the streams of a paper's runs, by a program that has a codec. This crate has none.

use std::fmt::{Debug, Formatter};
use std::sync::Arc;

use lastmile::time::Span;
use lastmile_sim::roles::Makers;

use super::case::Case;
use super::item::Item;
use crate::World;
use crate::error::{Error, Result};

type Filming = dyn Fn(Makers, (usize, usize), World) -> Makers + Send + Sync;

/// Puts real video into streams.
#[derive(Clone)]
pub struct Film(Arc<Filming>);

impl Debug for Film {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("Film")
    }
}

impl Film {
    /// `make` gets the makers of a run, the pixels across and down of its pictures, and the world: coding takes time in the lab alone.
    pub fn new(make: impl Fn(Makers, (usize, usize), World) -> Makers + Send + Sync + 'static) -> Film {
        Film(Arc::new(make))
    }
}

/// The makers of a case's run.
pub(super) fn makers(film: Option<&Film>, case: &Case, noise: Span, seed: u64, world: World) -> Makers {
    let makers = Makers::registered(noise, seed);
    match (film, case.filmed) {
        (Some(film), Some(size)) => (film.0)(makers, size, world),
        _ => makers,
    }
}

/// Refuses items whose runs need real video where the program has none.
pub(super) fn check(film: Option<&Film>, chosen: &[&Item]) -> Result<()> {
    let filmed = chosen.iter().find(|item| item.cases().iter().any(|case| case.filmed.is_some()));
    match filmed.filter(|_| film.is_none()) {
        None => Ok(()),
        Some(item) => Err(Error::Input(format!(
            "{} needs real video, which this build is without: build it with the feature `video` (cargo build --release -p lastmile-cli --features video)",
            item.id
        ))),
    }
}

#[cfg(test)]
mod tests {
    use crate::audience::Audience;
    use crate::fleet::Fleet;
    use crate::papers::{PAPERS, Request, reproduce};

    #[test]
    fn items_of_real_video_are_refused_without_it_and_not_made_unless_they_are_named() {
        for (paper, item) in [
            ("vtp", "figure-11"),
            ("vtp", "figure-12"),
            ("tfrc-probe", "video"),
            ("tfrc-probe", "video-wifi"),
        ] {
            let paper = PAPERS.find(paper).unwrap();
            let known = (paper.items)();
            assert!(!known.iter().find(|known| known.id == item).unwrap().by_default());
            let request = Request { items: vec![item.to_owned()], ..Request::default() };
            let refused = reproduce(paper, &request, &Fleet::Whole, &Audience::default()).err().unwrap();
            assert!(refused.to_string().contains(&format!("{item} needs real video")), "{refused}");
        }
    }
}
