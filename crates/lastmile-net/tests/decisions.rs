//! Decisions as recordings hold them: those of the classifier, of the controller and of the stream stand beside each other.

use lastmile::classify::Decision::{Doubted, FellBack, LossJudged, Restored};
use lastmile::control::{self, Decision::Classify};
use lastmile::endpoint::Event;
use lastmile::endpoint::stream::Decision;

/// Lines of recordings that were made when one enum held all of a controller's decisions.
const LINES: [&str; 6] = [
    r#"{"at":1988720000,"node":0,"seq":4,"event":"loss-judged","id":77,"packets":1,"class":"wireless","by":"mbiaz"}"#,
    r#"{"at":20131600000,"node":0,"seq":802,"event":"fell-back","from":"mbiaz","to":"spike","needs":75120,"resolution":976563}"#,
    r#"{"at":31038388248,"node":0,"seq":1974,"event":"doubted","classifier":"spike","wireless":0.33698296546936035}"#,
    r#"{"at":21962269157,"node":0,"seq":198,"event":"restored","to":"zbs"}"#,
    r#"{"at":22000000000,"node":0,"seq":199,"event":"loss-event","id":901,"loss_event_rate":0.03125}"#,
    r#"{"at":23000000000,"node":0,"seq":200,"event":"target-changed","target":{"bits_per_second":726392,"layer":"ip"}}"#,
];

#[test]
fn recorded_decisions_are_read_and_written_as_they_were() {
    for (place, line) in LINES.into_iter().enumerate() {
        let Ok(event) = serde_json::from_str::<Event>(line) else { panic!("{line}") };
        assert_eq!(serde_json::to_string(&event).unwrap(), line);
        let is_right = match event.what.of::<Decision>() {
            Some(Decision::Control(Classify(LossJudged { by: "mbiaz", .. }))) => place == 0,
            Some(Decision::Control(Classify(FellBack { .. }))) => place == 1,
            Some(Decision::Control(Classify(Doubted { .. }))) => place == 2,
            Some(Decision::Control(Classify(Restored { .. }))) => place == 3,
            Some(Decision::Control(control::Decision::LossEvent { .. })) => place == 4,
            Some(_) => place == 5,
            None => false,
        };
        assert!(is_right, "{event:?}");
    }
    let unknown = LINES[3].replace("zbs", "crystal ball");
    assert!(serde_json::from_str::<Event>(&unknown).is_err());
}
