//! `beebox-gateway detach`: ends a running `attach`.

use super::control;
use super::input::Interface;
use command::answer::{Answer, Failure};

/// End the `beebox-gateway attach` of an interface
///
/// The kernel detaches the gateway when its process ends, in whatever way; this asks the process
/// to end, and says if there is none.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox-gateway detach eth0")]
pub(super) struct Args {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: String,
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let interface = Interface::find(&args.interface)?;
    match control::detach(&interface)? {
        true => {
            diagnostic!("detached from {interface}");
            Ok(Answer::Yes)
        }
        false => {
            diagnostic!("no gateway is attached to {interface}");
            Ok(Answer::No)
        }
    }
}
