//! What can be done to a link while the engine runs.

use super::{Engine, EngineError, NodeId};
use crate::network::element::Element;
use crate::network::link::{Change, Dropped, Link};

impl Engine {
    /// Changes a link's rate or delay from the engine's time on, whatever `change.at` says. The link needs
    /// [`Events::PerDequeue`](crate::network::link::Events::PerDequeue); changes known beforehand go into its
    /// schedule.
    ///
    /// ```
    /// use lastmile::{time::{Span, Time}, units::Rate};
    /// use lastmile_sim::{network::engine::*, network::link::*};
    /// let mut engine = Engine::new();
    /// let config = LinkConfig { rate: Some(Rate::ip(1_000_000)), events: Events::PerDequeue, ..Default::default() };
    /// let link = engine.add(Link::new(config))?;
    /// let slower = Change { at: Time::ZERO, rate: Some(Rate::ip(150_000)), delay: Some(Span::from_millis(40)) };
    /// engine.change_link(link, &slower)?;
    /// # Ok::<(), EngineError>(())
    /// ```
    pub fn change_link(&mut self, link: NodeId, change: &Change) -> Result<(), EngineError> {
        let now = self.now;
        let changed = match self.slots.get_mut(link.0 as usize).map(|slot| &mut slot.element) {
            Some(Element::Link(link)) => link.change_in(&mut self.packets, now, change),
            _ => false,
        };
        if !changed {
            return Err(EngineError::NotChangeable { node: link.0 });
        }
        // Woken at this moment, it is polled in its turn and says anew when it wants to be.
        self.want(link.0 as usize, Some(now));
        Ok(())
    }

    /// Keeps every packet that the link drops or loses from now on, up to `limit`; see
    /// [`Link::log_drops`](crate::network::link::Link::log_drops). Does nothing to what is no link.
    pub fn log_drops(&mut self, link: NodeId, limit: usize) {
        if let Some(link) = self.link_mut(link) {
            link.log_drops(limit);
        }
    }

    /// Takes the drops that a link has kept so far.
    pub fn take_drops(&mut self, link: NodeId) -> Vec<Dropped> {
        self.link_mut(link).map(Link::take_drops).unwrap_or_default()
    }

    fn link_mut(&mut self, node: NodeId) -> Option<&mut Link> {
        match &mut self.slots.get_mut(node.0 as usize)?.element {
            Element::Link(link) => Some(link),
            _ => None,
        }
    }
}
