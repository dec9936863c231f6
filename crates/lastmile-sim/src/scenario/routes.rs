//! Shortest paths, computed once when a scenario is loaded.

use core::cell::OnceCell;
use std::collections::VecDeque;

/// A way from one vertex to another: a link's number among all links, or beyond those a direction of a WLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The ways of a network, by their ends. Each end is searched for once, however many flows go there.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) edges: Vec<Edge>,
    /// Links by the vertex they lead to, so that a search is linear in links.
    into: Vec<Vec<usize>>,
    hosts: usize,
    /// By destination: for every vertex the link by which a packet goes on.
    towards: Vec<OnceCell<Vec<Option<usize>>>>,
}

impl Ways {
    /// Hosts (vertices below `hosts`) do not forward: they are first or last on a path.
    pub(super) fn new(edges: Vec<Edge>, vertices: usize, hosts: usize) -> Ways {
        let mut into = vec![Vec::new(); vertices];
        for (index, link) in edges.iter().enumerate() {
            into[link.to].push(index);
        }
        Ways { edges, into, hosts, towards: vec![OnceCell::new(); vertices] }
    }

    /// The links of the path between two vertices; `None` where there is none.
    pub(super) fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let next = self.towards.get(to)?.get_or_init(|| self.search(to));
        path(from, next, &self.edges, to)
    }

    /// For every vertex the link by which a packet goes on towards one destination.
    ///
    /// Fewest hops; among those the link that comes first in the file.
    fn search(&self, to: usize) -> Vec<Option<usize>> {
        let vertices = self.into.len();
        let mut next = vec![None; vertices];
        let mut distance = vec![usize::MAX; vertices];
        let mut frontier = VecDeque::from([to]);
        if let Some(zero) = distance.get_mut(to) {
            *zero = 0;
        }
        while let Some(vertex) = frontier.pop_front() {
            if vertex != to && vertex < self.hosts {
                continue;
            }
            for &link in &self.into[vertex] {
                let before = self.edges[link].from;
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
}

/// The links of the path between two vertices; `None` where there is none.
fn path(from: usize, next: &[Option<usize>], links: &[Edge], to: usize) -> Option<Vec<usize>> {
    let (mut at, mut path) = (from, Vec::new());
    while at != to {
        let link = (*next.get(at)?)?;
        path.push(link);
        at = links.get(link)?.to;
    }
    Some(path)
}
