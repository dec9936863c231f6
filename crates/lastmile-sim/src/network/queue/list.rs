//! Code that follows from the list of disciplines: their files, the enum that scenario files name, and the queue at work.

macro_rules! disciplines {
    ($($(#[$attr:meta])* $file:ident::$name:ident $(($beside:ident))?),+ $(,)?) => {
        $($(#[$attr])* mod $file; $(#[$attr])* pub use $file::$name; $(pub use $file::$beside;)?)+

        /// Drops and marks of a queue before it is full, and its order of sending.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(try_from = "Table")]
        #[non_exhaustive]
        pub enum Discipline {
            $($(#[$attr])* #[doc = concat!("See [`", stringify!($name), "`].")] $name($name),)+
        }

        /// Any discipline at work.
        #[derive(Debug)]
        pub(crate) enum AnyQueue {
            $($(#[$attr])* $name(<$name as Parameters>::Queue),)+
        }

        $($(#[$attr])* impl From<$name> for Discipline {
            fn from(parameters: $name) -> Discipline {
                Discipline::$name(parameters)
            }
        })+

        impl Discipline {
            pub(crate) fn limit(&self) -> Option<QueueLimit> {
                match self { $($(#[$attr])* Discipline::$name(it) => it.limit(),)+ }
            }

            pub(crate) fn check(&self) -> Result<(), ConfigError> {
                match self { $($(#[$attr])* Discipline::$name(it) => {
                    it.in_range().map_err(|OptionError { option: key, reason, .. }| ConfigError { key, reason })?;
                    it.check()
                })+ }
            }

            pub(crate) fn check_limit(&self, limit: QueueLimit) -> Result<(), ConfigError> {
                match self { $($(#[$attr])* Discipline::$name(it) => it.check_limit(limit),)+ }
            }

            pub(crate) fn queue(&self, rate: Option<Rate>, seed: u64, name: &str) -> AnyQueue {
                let random = Stream::new(seed, &format!("{name}/queue"));
                match self {
                    $($(#[$attr])* Discipline::$name(it) => AnyQueue::$name(it.queue(rate, random)),)+
                }
            }

            /// The discipline of a kind, with the options given to it.
            ///
            /// # Errors
            /// There is no such kind, or it takes no such option or not that value.
            pub fn read(kind: &str, given: &Given) -> Result<Discipline, ChoiceError> {
                let read = match kind {
                    $($(#[$attr])* $name::KIND => $name::read(given).map(Discipline::from),)+
                    _ => {
                        let known = Discipline::described().map(|(kind, ..)| kind).collect();
                        return Err(ChoiceError::unknown("discipline", kind, known, elsewhere(kind)));
                    }
                };
                Ok(read.map_err(|error| error.of(kind))?)
            }

            /// Its name as files have it.
            pub fn kind(&self) -> String {
                match self { $($(#[$attr])* Discipline::$name(_) => $name::KIND,)+ }.to_owned()
            }

            /// Of each kind its name, its options, and where it comes from.
            pub fn described() -> impl Iterator<Item = (&'static str, &'static [Opt], &'static str)> {
                [$($(#[$attr])* ($name::KIND, $name::OPTIONS, $name::SOURCE)),+].into_iter()
            }

            /// Each discipline, with parameters with which some ten packets see it act.
            #[cfg(test)]
            pub(crate) fn lively(ecn: bool) -> Vec<Discipline> {
                vec![$($(#[$attr])* Discipline::$name($name::lively(ecn))),+]
            }
        }

        impl AnyQueue {
            pub(crate) fn enqueue(
                &mut self, now: u64, ahead: Ahead, packet: Waiting, fate: &mut impl Fate,
            ) -> bool {
                match self { $($(#[$attr])* AnyQueue::$name(it) => it.enqueue(now, ahead, packet, fate),)+ }
            }

            pub(crate) fn dequeue(&mut self, now: u64, fate: &mut impl Fate) -> Option<Waiting> {
                match self { $($(#[$attr])* AnyQueue::$name(it) => it.dequeue(now, fate),)+ }
            }

            pub(crate) fn idle(&mut self, now: u64) {
                match self { $($(#[$attr])* AnyQueue::$name(it) => it.idle(now),)+ }
            }

            pub(crate) fn len(&self) -> usize {
                match self { $($(#[$attr])* AnyQueue::$name(it) => it.len(),)+ }
            }

            pub(crate) fn memory(&self) -> u64 {
                match self { $($(#[$attr])* AnyQueue::$name(it) => it.memory(),)+ }
            }

            pub(crate) fn bytes(&self) -> u64 {
                match self { $($(#[$attr])* AnyQueue::$name(it) => it.bytes(),)+ }
            }

            pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = &Waiting> + '_> {
                match self { $($(#[$attr])* AnyQueue::$name(it) => it.iter(),)+ }
            }
        }
    };
}
