//! What follows from the list of disciplines: their files, the enum that scenario files name, and what is at work.

macro_rules! disciplines {
    ($($(#[$attr:meta])* $file:ident::$name:ident $(($beside:ident))?),+ $(,)?) => {
        $($(#[$attr])* mod $file; $(#[$attr])* pub use $file::$name; $(pub use $file::$beside;)?)+

        /// What a queue does before it is full, and in which order it sends.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
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
                match self { $($(#[$attr])* Discipline::$name(it) => it.check(),)+ }
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

            /// Its name as files have it.
            pub fn kind(&self) -> String {
                kebab(match self { $($(#[$attr])* Discipline::$name(_) => stringify!($name),)+ })
            }

            /// Of each discipline its name as a type, its keys with their defaults, and where it comes from.
            fn described() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
                [$($(#[$attr])* (stringify!($name), $name::KEYS, $name::SOURCE)),+].into_iter()
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
