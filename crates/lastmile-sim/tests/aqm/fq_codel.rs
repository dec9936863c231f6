//! FQ-CoDel: with one queue it is CoDel. A story of the network has a sparse flow that does not wait.

use lastmile_sim::network::link::QueueLimit;
use lastmile_sim::network::queue::{Codel, Discipline, FqCodel};

use super::codel::{arrivals, signals};
use lastmile::node::Ecn;

#[test]
fn with_one_queue_it_is_codel_packet_for_packet() {
    let mut signalled = 0;
    for pattern in ["cbr", "burst", "light", "random"] {
        for (ecn, marks) in [(Ecn::NotEct, false), (Ecn::Ect0, true), (Ecn::Ect0, false)] {
            let codel = Codel { ecn: marks, ..Codel::default() };
            let limit = QueueLimit::Packets(100_000);
            let fq = FqCodel { flows: 1, ecn: marks, limit, ..FqCodel::default() };
            let arrivals = arrivals(pattern, 20_000);
            let [alone, one] =
                [Discipline::Codel(codel), Discipline::FqCodel(fq)].map(|it| signals(it, ecn, &arrivals));
            assert_eq!(alone, one, "{pattern}");
            signalled += one.0.len() + one.1.len();
        }
    }
    assert!(signalled > 1_000, "{signalled}");
}
