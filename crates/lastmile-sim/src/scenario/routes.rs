//! Shortest paths, computed once when a scenario is loaded.

use std::collections::VecDeque;

/// A way from one vertex to another: a link's number among all links, or beyond those a direction of a WLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// For every vertex the link by which a packet goes on towards one destination.
///
/// Fewest hops; among those the link that comes first in the file. Hosts (vertices below `hosts`) do not
/// forward: they are first or last on a path.
pub(super) fn towards(to: usize, vertices: usize, hosts: usize, links: &[Edge]) -> Vec<Option<usize>> {
    let mut next = vec![None; vertices];
    let mut distance = vec![usize::MAX; vertices];
    let mut frontier = VecDeque::from([to]);
    if let Some(zero) = distance.get_mut(to) {
        *zero = 0;
    }
    // Links by the vertex they lead to, so that the search is linear in links.
    let mut into = vec![Vec::new(); vertices];
    for (index, link) in links.iter().enumerate() {
        into[link.to].push(index);
    }
    while let Some(vertex) = frontier.pop_front() {
        if vertex != to && vertex < hosts {
            continue;
        }
        for &link in &into[vertex] {
            let before = links[link].from;
            let hops = distance[vertex] + 1;
            if distance[before] == usize::MAX {
                (distance[before], next[before]) = (hops, Some(link));
                frontier.push_back(before);
            } else if distance[before] == hops && next[before].is_some_and(|chosen| link < chosen) {
                next[before] = Some(link);
            }
        }
    }
    next
}

/// The links of the path between two vertices; `None` where there is none.
pub(super) fn path(from: usize, next: &[Option<usize>], links: &[Edge], to: usize) -> Option<Vec<usize>> {
    let (mut at, mut path) = (from, Vec::new());
    while at != to {
        let link = (*next.get(at)?)?;
        path.push(link);
        at = links.get(link)?.to;
    }
    Some(path)
}
