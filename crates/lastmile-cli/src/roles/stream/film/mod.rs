//! A viewer's video over time: numbers, charts for a page, and a still of its worst moment.

use lastmile::endpoint::stream::Viewed;
use lastmile::observe::stats::quantile_of_sorted;
use lastmile::time::Time;
use lastmile_net::media::{Seen, Still, png};
use lastmile_report::chart::{Axis, Chart};
use lastmile_report::html;

#[cfg(feature = "study")]
mod filming;
#[cfg(feature = "study")]
pub(crate) use filming::{Filmed, Filming, Second, charts_beside, filmed};

/// Colours of videos that stand in one chart.
const CLASSES: [&str; 2] = ["c1", "c2"];
/// Seconds of a point of the quality chart.
const STEP: f64 = 0.5;

/// A video as its viewer saw it.
pub(crate) struct Film<'a> {
    /// Its name in charts with others; empty where it is alone.
    pub(crate) name: String,
    pub(crate) seen: &'a Seen,
    pub(crate) viewed: Viewed,
    /// When the source's first picture was due, on the viewer's clock; nothing where that has another clock.
    pub(crate) began: Option<Time>,
}

/// A moment of the run that charts mark: seconds from the first picture on, and its name.
pub(crate) type Moment = (f64, f64, &'static str);

impl Film<'_> {
    /// Delays of the pictures from their source to the screen, each with its time in seconds: above the least of them where clocks are apart.
    pub(crate) fn delays(&self) -> Vec<(f64, f64)> {
        let rate = self.seen.frame_rate;
        let delay = |(number, shown): (u64, Time)| {
            let at = number as f64 / rate;
            (at, (shown - self.began.unwrap_or(Time::ZERO)).as_secs_f64() - at)
        };
        let shown = self.seen.places.iter().filter_map(|place| Some((place.number, place.shown?)));
        let mut delays: Vec<_> = shown.map(delay).collect();
        if self.began.is_none() {
            let least = delays.iter().map(|delay| delay.1).fold(f64::INFINITY, f64::min);
            delays.iter_mut().for_each(|delay| delay.1 -= least);
        }
        delays
    }

    /// The delay that the share `q` of all pictures does not exceed, seconds.
    pub(crate) fn delay(&self, q: f64) -> Option<f64> {
        let mut delays: Vec<_> = self.delays().into_iter().map(|delay| delay.1).collect();
        delays.sort_by(f64::total_cmp);
        quantile_of_sorted(&delays, q)
    }

    /// Seconds of the video, by the places on the screen.
    pub(crate) fn seconds(&self) -> f64 {
        self.seen.places.last().map_or(0.0, |place| (place.number + 1) as f64 / self.seen.frame_rate)
    }

    /// The video in a sentence: freezes, frames shown, delay, SSIM.
    pub(crate) fn sentence(&self) -> String {
        let Viewed { freezes, frozen, .. } = self.viewed;
        let milliseconds =
            |q: f64| self.delay(q).map_or_else(|| "unknown".to_owned(), |s| format!("{:.0} ms", s * 1e3));
        let ssim = |ssim: Option<f64>| ssim.map_or_else(|| "unknown".to_owned(), |ssim| format!("{ssim:.3}"));
        let froze = match freezes {
            0 => "never froze".to_owned(),
            1 => format!("froze once, for {:.1} s", frozen.as_secs_f64()),
            more => format!("froze {more} times, for {:.1} s in all", frozen.as_secs_f64()),
        };
        let above = if self.began.is_some() { "" } else { " above the least" };
        let frames = (self.seconds() * self.seen.frame_rate).round();
        format!(
            "{froze}; {} of {frames:.0} frames were shown, 95 % of them within {}{above} (median {}); SSIM on the screen {}, of the frames shown {}",
            self.viewed.frames,
            milliseconds(0.95),
            milliseconds(0.5),
            ssim(self.seen.screen_ssim()),
            ssim(self.seen.ssim()),
        )
    }
}

/// Charts of one or two videos over the source's time: frame rate, delay of the frames, and quality on the screen.
pub(crate) fn charts(films: &[Film<'_>], moments: &[Moment]) -> Vec<String> {
    let seconds = films.iter().map(Film::seconds).fold(0.0, f64::max);
    let time = || Axis::from_zero("time, s", [seconds]);
    let rate = films.iter().map(|film| film.seen.frame_rate).fold(1.0, f64::max);
    let chart = |title: &str, y: Axis| marked(keyed(Chart::new(title, time(), y), films), moments);
    let delays: Vec<_> = films
        .iter()
        .map(|film| film.delays().into_iter().map(|(at, delay)| (at, delay * 1e3)).collect::<Vec<_>>())
        .collect();
    let (mut rates, mut times, mut quality) = (
        chart("Frames shown in each second", Axis::from_zero("frames/s", [rate])),
        chart(
            "Delay from the source to the screen",
            Axis::from_zero("ms", delays.iter().flatten().map(|delay| delay.1)),
        ),
        chart("Quality on the screen, beside the source", Axis::from_zero("SSIM of Y", [1.0])),
    );
    for ((film, delays), class) in films.iter().zip(&delays).zip(CLASSES) {
        let shown = |second: f64| {
            let of = |at: f64| (second..second + 1.0).contains(&at);
            delays.iter().filter(|delay| of(delay.0)).count() as f64
        };
        let whole = (0..film.seconds().floor() as u32).map(f64::from);
        rates = rates.line(class, &whole.map(|second| (second + 0.5, shown(second))).collect::<Vec<_>>());
        times = times.line(class, delays);
        quality = quality.line(class, &film.steps());
    }
    vec![rates.figure(), times.figure(), quality.figure()]
}

/// A chart's keys, where several videos are in it.
fn keyed(chart: Chart, films: &[Film<'_>]) -> Chart {
    let named = films.iter().zip(CLASSES).filter(|_| films.len() > 1);
    named.fold(chart, |chart, (film, class)| chart.key(class, &film.name))
}

/// A chart with the moments of the run.
fn marked(chart: Chart, moments: &[Moment]) -> Chart {
    moments.iter().fold(chart, |chart, &(from, to, name)| match to > from {
        true => chart.band("ci", from, to, name),
        false => chart.vertical("cg", from, name),
    })
}

impl Film<'_> {
    /// Mean SSIM of each step of time.
    fn steps(&self) -> Vec<(f64, f64)> {
        let step_of = |number: u64| (number as f64 / self.seen.frame_rate / STEP) as u64;
        let steps = self.seen.places.chunk_by(|a, b| step_of(a.number) == step_of(b.number));
        let mean = |places: &[lastmile_net::media::Place]| {
            places.iter().map(|place| place.ssim).sum::<f64>() / places.len() as f64
        };
        steps
            .filter_map(|places| Some(((step_of(places.first()?.number) as f64 + 0.5) * STEP, mean(places))))
            .collect()
    }

    /// The screen in the middle of the worst second, that of another video at the same time, if it looked there, and the source's picture.
    pub(crate) fn stills(&self, beside: Option<&Film<'_>>) -> Vec<String> {
        let Some(worst) = &self.seen.worst else { return Vec::new() };
        let same = beside.and_then(|film| Some((film, film.seen.watched.as_ref()?)));
        let second = format!(", in its second {:.3}", worst.second);
        let screens = [(self.words(worst) + &second, &worst.screen)];
        let beside = same.map(|(film, still)| (film.words(still), &still.screen));
        let source = (format!("{:.1} s: the source", self.at(worst)), &worst.source);
        let pictures = screens.into_iter().chain(beside).chain([source]);
        pictures.filter_map(|(words, picture)| Some(html::picture(&words, &png(picture).ok()?))).collect()
    }

    /// Seconds of a still since the first picture.
    fn at(&self, still: &Still) -> f64 {
        still.number as f64 / self.seen.frame_rate
    }

    fn words(&self, still: &Still) -> String {
        let age = (still.number - still.stood) as f64 / self.seen.frame_rate;
        let old = if age > 0.0 { format!(", a picture that is {age:.2} s old") } else { String::new() };
        let name = if self.name.is_empty() { String::new() } else { format!("{}, ", self.name) };
        format!("{name}{:.1} s: on the screen{old}; SSIM {:.3}", self.at(still), still.ssim)
    }
}

/// The section of a receiver's page; nothing where there was nothing to compare with.
pub(crate) fn section(seen: &Seen, viewed: Viewed) -> String {
    if seen.places.is_empty() {
        return String::new();
    }
    let film = Film { name: String::new(), seen, viewed, began: None };
    let words = html::esc(&film.sentence());
    let (charts, stills) = (charts(std::slice::from_ref(&film), &[]), html::plots(&film.stills(None)));
    format!(
        "<h2>Video</h2>\n<p>It {words}.</p>\n<article class=\"card\"><div class=\"plots\">\n{}</div></article>\n\
         <h3>The worst second, and the source</h3>\n{stills}",
        charts.concat()
    )
}
