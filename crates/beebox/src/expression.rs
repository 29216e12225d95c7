//! Filter expressions, compiled by the system's libpcap.
//!
//! The program of an expression depends on the link type and the byte order of the
//! capture, so an [`Expression`] holds a list of filters, one for each pair. It is a
//! linked list of once-cells: threads append to it without a lock, and a filter in it
//! can be borrowed as long as the expression.

use std::sync::OnceLock;

use capture::{ByteOrder, Interface, LinkType, PcapHeader, Resolution};
use isa::classic::SockFilter;
use sys::libpcap::{CompileError, Libpcap};

use crate::error::FilterError;
use crate::filter::{Filter, FilterBuilder};
use crate::internal::captures::FilterSource;

/// Bytes that tcpdump keeps of a packet.
const SNAPLEN: u32 = 262_144;

/// A filter expression as tcpdump takes it, such as `tcp port 22`.
///
/// ```
/// use beebox::Expression;
/// use beebox::captures::LinkType;
///
/// # if let Err(beebox::FilterError::NoLibpcap(_)) = Expression::new("") { return Ok(()); }
/// let ssh = Expression::new("tcp port 22")?;
/// assert_eq!(ssh.for_link_type(LinkType::RAW)?.checked().program().len(), 23);
/// assert!(Expression::new("tcp prot 22")?.for_link_type(LinkType::RAW).is_err());
/// # Ok::<(), beebox::FilterError>(())
/// ```
pub struct Expression {
    libpcap: Libpcap,
    text: String,
    settings: FilterBuilder,
    optimizes: bool,
    on_compile: Option<Box<OnCompile>>,
    compiled: Link,
}

type OnCompile = dyn Fn(&Filter) + Send + Sync;

/// The filters compiled so far: a list to which threads append and from which nothing
/// is removed.
type Link = OnceLock<Box<Compiled>>;

struct Compiled {
    /// Link type and byte order that the program depends on.
    target: (LinkType, ByteOrder),
    result: Result<Filter, FilterError>,
    next: Link,
}

impl Expression {
    /// Loads libpcap for an expression. [`Expression::for_link_type`] compiles it, with the
    /// default settings of a [`FilterBuilder`].
    pub fn new(text: &str) -> Result<Expression, FilterError> {
        Filter::builder().expression(text)
    }

    pub(crate) fn with_settings(
        text: &str,
        settings: FilterBuilder,
    ) -> Result<Expression, FilterError> {
        let libpcap = Libpcap::load().map_err(|absent| FilterError::NoLibpcap(absent.0))?;
        Ok(Expression {
            libpcap,
            text: text.to_owned(),
            settings,
            optimizes: true,
            on_compile: None,
            compiled: Link::new(),
        })
    }

    /// Sets whether libpcap optimizes what it compiles [default: yes]. Its optimizer takes
    /// minutes and gigabytes for expressions with thousands of terms.
    pub fn optimize(mut self, optimizes: bool) -> Expression {
        self.optimizes = optimizes;
        self
    }

    /// Calls a function with each filter once, when it was compiled and before it runs.
    pub fn on_compile(mut self, hook: impl Fn(&Filter) + Send + Sync + 'static) -> Expression {
        self.on_compile = Some(Box::new(hook));
        self
    }

    /// The expression's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The filter for packets of a link type.
    pub fn for_link_type(&self, link_type: LinkType) -> Result<&Filter, FilterError> {
        self.for_interface(&interface(link_type, SNAPLEN))
    }

    /// The instructions for packets of a link type, as `tcpdump -d` shows them; a packet
    /// that matches is kept up to `snaplen` bytes.
    #[doc(hidden)]
    pub fn program(
        &self,
        link_type: LinkType,
        snaplen: u32,
    ) -> Result<Vec<SockFilter>, FilterError> {
        self.instructions(&interface(link_type, snaplen))
    }

    fn instructions(&self, interface: &Interface) -> Result<Vec<SockFilter>, FilterError> {
        let header = PcapHeader::new(*interface);
        let compiled = self
            .libpcap
            .compile(header.raw(), &self.text, self.optimizes);
        compiled.map_err(|refused| match refused {
            CompileError::Expression(message) => FilterError::Expression {
                text: self.text.clone(),
                message,
            },
            CompileError::Header(message) => FilterError::LinkType(message),
            CompileError::Nul => FilterError::Nul,
            CompileError::OutOfMemory => FilterError::OutOfMemory,
        })
    }

    fn compile(&self, interface: &Interface) -> Result<Filter, FilterError> {
        let filter = self.settings.build(&self.instructions(interface)?)?;
        if let Some(hook) = &self.on_compile {
            hook(&filter);
        }
        Ok(filter)
    }
}

/// An interface of a capture that was made here.
fn interface(link_type: LinkType, snaplen: u32) -> Interface {
    Interface {
        link_type,
        snaplen,
        resolution: Resolution::MICROSECONDS,
        time_offset: 0,
        order: ByteOrder::Little,
    }
}

impl FilterSource for Expression {
    fn for_interface(&self, interface: &Interface) -> Result<&Filter, FilterError> {
        let target = (interface.link_type, interface.order);
        let mut link = &self.compiled;
        loop {
            // Another thread may append another link type first; then the search
            // goes on.
            let compiled = link.get_or_init(|| {
                Box::new(Compiled {
                    target,
                    result: self.compile(interface),
                    next: Link::new(),
                })
            });
            if compiled.target == target {
                return compiled.result.as_ref().map_err(FilterError::clone);
            }
            link = &compiled.next;
        }
    }
}
