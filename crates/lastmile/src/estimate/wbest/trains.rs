//! WBest's second step: the available bandwidth from trains at the capacity; their slowdowns and losses.

use super::*;

impl Wbest {
    pub(super) fn on_train(&mut self, record: &StreamRecord, verdict: StreamVerdict) {
        let asks = !self.config.faithful && !self.unpoliced && self.shaper.is_none();
        if asks && policer::suspects_train(record, self.base.coalescing()) {
            let check =
                PolicerCheck::new(self.capacity.rate, self.config.packet_size, self.base.coalescing());
            self.phase = Phase::Policer(check);
            self.suspect = Some((record.clone(), verdict));
            return self.pause();
        }
        let slot = shaper::slot(self.limit().rate, self.config.packet_size);
        let suspected = self.suspects(record, verdict, slot);
        self.pause();
        if suspected {
            return;
        }
        let plain = !self.config.faithful && self.classifier.is_none();
        let least = self.least_delay.filter(|_| plain);
        let chance = least.and_then(|least| losses(record, &self.first_streams, least, slot));
        self.see(record, verdict);
        if let Some(chance) = chance {
            self.doubtful += 1;
            // Another train with fewer losses would be no better, only luckier.
            if chance < OVERFLOWS || self.doubtful >= self.config.train_attempts {
                self.base.refuse(Refusal::congested(record));
            }
            self.doubt = DOUBT;
            return;
        }
        self.doubt = self.doubt.saturating_sub(1);
        if self.doubt > 0 {
            return;
        }
        self.doubtful = 0;
        if plain && verdict == StreamVerdict::Believed && plateau(record, slot) {
            // Others may only have paused, and do not do so train after train.
            self.plateaus += 1;
            if self.plateaus >= PLATEAUS {
                self.base.refuse(Refusal::QueueFull { trains: self.plateaus });
            }
            return;
        }
        self.plateaus = 0;
        let lost_share = self.classify(record);
        let fluid = match verdict {
            StreamVerdict::ClockStepped | StreamVerdict::NoReport => None,
            _ if self.config.faithful => faithful_spare(record, self.config.packet_size, self.capacity.rate),
            StreamVerdict::Believed => Fluid::of(record).map(|fluid| {
                self.outputs.push(fluid.output);
                fluid.spare(self.limit().rate)
            }),
            _ => None,
        };
        let Some(fluid) = fluid else {
            return self.base.waste_of(record, verdict, self.config.train_attempts);
        };
        // [WBest Algorithm 1, lines 4 to 13]
        self.trains.push(fluid.max(0.0) * lost_share);
        self.train_streams.push(record.stream);
        let largest = Batches::of(record).largest();
        if largest > 1 {
            let text = "arrivals were stamped in batches; only the last of each was used";
            self.base.warn(WarningCode::BatchedStamps, text);
        }
        if self.trains.len() < self.wanted() {
            return;
        }
        match self.asks_fair_queue() {
            true => self.phase = Phase::FairQueue(None),
            false => self.finish(),
        }
    }

    /// Keeps a stream to hold later losses against.
    pub(super) fn see(&mut self, record: &StreamRecord, verdict: StreamVerdict) {
        let tells = matches!(verdict, StreamVerdict::Believed | StreamVerdict::TooLossy);
        if tells && self.first_streams.len() < SEEN {
            self.first_streams.push(record.clone());
        }
    }

    /// Feeds the classifier, and gives the factor by which losses lower what the train says.
    ///
    /// Wireless losses lower it by their share (Algorithm 1, line 12). A loss by congestion says that nothing was
    /// left while it happened: the gaps it spoiled count as zero bandwidth.
    pub(super) fn classify(&mut self, record: &StreamRecord) -> f64 {
        let n = record.packets.len();
        let plain = 1.0 - record.lost() as f64 / n.max(1) as f64;
        let Some(mut classifier) = self.classifier.take() else { return plain };
        if record.rx_resolution > classifier.resolution_needed() {
            let text = "stamps are too coarse for the loss classifier; all losses count as wireless";
            self.base.warn(WarningCode::CoarseStamps, text);
            self.classifier = Some(classifier);
            return plain;
        }
        let classes = classify::losses(record, &mut *classifier);
        self.classifier = Some(classifier);
        let wireless = classes.iter().filter(|c| **c == Some(LossClass::Wireless)).count();
        let congested = |i: usize| classes[i] == Some(LossClass::Congestion);
        let spoiled = (1..n).filter(|i| congested(*i) || congested(i - 1)).count();
        (1.0 - wireless as f64 / n.max(1) as f64) * (1.0 - spoiled as f64 / (n.max(2) - 1) as f64)
    }

    /// Looks whether a train began to come slower; then bursts tell why.
    pub(super) fn suspects(&mut self, record: &StreamRecord, verdict: StreamVerdict, slot: Span) -> bool {
        if self.config.faithful || self.refuted || self.shaper.is_some() {
            return false;
        }
        let (noise, coalescing) = (self.base.noise(record) * 2, self.base.coalescing());
        let Some(slowdown) = Slowdown::of_train(record, slot, noise, coalescing) else { return false };
        // A capacity that was given may just be too high.
        if self.config.capacity.is_some() && slowdown.at() <= 2 {
            return false;
        }
        self.phase = Phase::Shaper(ShaperCheck::new(slowdown, self.config.packet_size, coalescing));
        self.suspect = Some((record.clone(), verdict));
        true
    }

    pub(super) fn on_policed(&mut self, record: &StreamRecord) {
        let noise = self.base.noise(record);
        let Phase::Policer(check) = &mut self.phase else { return };
        let found = check.on_stream(record, noise);
        self.pause();
        match found {
            None => {}
            Some(Some(policer)) => self.policed(policer),
            Some(None) => {
                self.unpoliced = true;
                self.phase = Phase::Train;
                if let Some((train, verdict)) = self.suspect.take() {
                    self.on_train(&train, verdict);
                }
            }
        }
    }

    /// Ends behind a policer: its rest shows in no queue.
    pub(super) fn policed(&mut self, policer: Policer) {
        self.base
            .warn(WarningCode::Policer, format!("{}; the available bandwidth is unknown", policer.text()));
        self.policer = Some(policer);
        self.end_without_rest();
    }

    pub(super) fn on_suspicion(&mut self, record: &StreamRecord) {
        let noise = self.base.noise(record);
        let Phase::Shaper(check) = &mut self.phase else { return };
        let found = check.on_stream(record, noise);
        self.pause();
        match found {
            None => {}
            Some(shaper::Finding::Shaped(shaper)) => self.shaped(shaper),
            Some(shaper::Finding::Unclear(later)) => {
                (self.suspect, self.unseen) = (None, None);
                let text = format!(
                    "{}; the sustained rate and the available bandwidth are unknown",
                    shaper::unclear(later)
                );
                self.base.warn(WarningCode::Shaper, text);
                self.end_without_rest();
            }
            Some(shaper::Finding::Refuted) => {
                self.refuted = true;
                self.phase = Phase::Train;
                if let Some((train, verdict)) = self.suspect.take() {
                    self.on_train(&train, verdict);
                }
            }
        }
    }

    /// Trains go on at the rate that lasts. Those that were sent say what a burst has left.
    pub(super) fn shaped(&mut self, shaper: Shaper) {
        let of_bursts = shaper.of_bursts(self.config.packet_size).filter(|_| self.config.capacity.is_none());
        if let Some(known) = of_bursts {
            (self.capacity, self.burst, self.pair_streams) = known;
        }
        self.shaper = Some(shaper);
        self.suspect = None;
        self.trains.clear();
        self.outputs.clear();
        self.train_streams.clear();
        (self.doubt, self.doubtful, self.plateaus) = (0, 0, 0);
        self.phase = Phase::Train;
    }

    pub(super) fn on_batched(&mut self, record: &StreamRecord) {
        let Phase::Batched(batched) = &mut self.phase else { return };
        let planned = batched.plan().map_or(0, |plan| plan.packets.len());
        let verdict = self.base.judge(record, planned);
        match batched.on_stream(record, verdict, self.base.noise(record), self.least_delay) {
            Taken::Yes => self.base.useful(),
            Taken::No(verdict) => self.base.waste(verdict, self.config.train_attempts),
            Taken::Overflow => self.base.refuse(Refusal::congested(record)),
        }
        (self.capacity, self.trains) = (batched.capacity(), batched.spares());
        (self.pair_streams, self.train_streams) =
            (batched.burst_streams.clone(), batched.train_streams.clone());
        let (done, refusal) = (batched.plan().is_none(), batched.refusal());
        self.pause();
        if done && !self.base.is_done() {
            match refusal {
                Some(refusal) => self.base.refuse(refusal),
                None => self.finish(),
            }
        }
    }
}
