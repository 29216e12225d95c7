//! What a page shows of the runs of a program: the packets, and the paths of the first ones, whose runs
//! are recorded in the checked engine.

use std::fmt;

use ::kernel::programs::verdict;
use capture::Record;
use interp::checked::Limits;
use packet::{FirstHeader, summary};
use report::html::{PacketLine, RunPage, RunSummary, SourceFinder};
use report::why::Why;
use vm::Redirect;

use super::recording::Recording;
use super::{
    PrintedText, RunError, RunnableProgram, TestRunOutput, WhyOptions, packet_behind,
    redirect_text, takes_packet,
};

/// The runs of a program that a page shows.
pub struct HtmlRuns<'o> {
    with: WhyOptions<'o>,
    page: RunPage,
    /// What recorded the last run, for the next one.
    recording: Option<Box<Recording<'o>>>,
    /// The limits of runs that are not recorded.
    limits: Option<Limits>,
}

impl fmt::Debug for HtmlRuns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HtmlRuns").finish_non_exhaustive()
    }
}

impl<'o> RunnableProgram<'o> {
    /// Has the next runs written to a page.
    pub fn start_page(&mut self, with: WhyOptions<'o>) {
        self.page = Some(Box::new(HtmlRuns {
            with,
            page: RunPage::default(),
            recording: None,
            limits: None,
        }));
    }

    /// The page of the runs since, with what all runs of the object executed.
    pub fn take_page(&mut self, summary: &RunSummary, sources: &SourceFinder) -> Option<String> {
        let runs = self.page.take()?;
        let (coverage, costs) = (self.shared.coverage(), self.shared.line_costs());
        Some(runs.page.finish(summary, &coverage, &costs, sources))
    }

    /// As [`RunnableProgram::test_run_with_context`], once, and writes the run to the page.
    ///
    /// # Errors
    /// As there.
    pub fn test_run_on_page(
        &mut self,
        packet: &[u8],
        context: Option<&[u8]>,
    ) -> Result<TestRunOutput, RunError> {
        self.begin_page_run();
        let result = self.test_run_with_context(packet, context, 1);
        let line = PacketLine {
            captured: packet.len(),
            wire: packet.len() as u32,
            text: match takes_packet(self.kind()) {
                true => summary(packet, FirstHeader::Link),
                false => "no packet".to_owned(),
            },
            ..PacketLine::default()
        };
        let (outcome, after, printed) = match &result {
            Ok(output) => (
                Ok((output.retval, output.redirect)),
                packet_behind(self.kind(), packet, &output.data_out),
                output.printk.clone(),
            ),
            Err(error) => (Err(error), None, PrintedText::default()),
        };
        self.add_page_run(line, (packet, after.as_deref()), outcome, &printed);
        result
    }

    /// Records the next run, if the page has room for its path; true if it does.
    pub(super) fn begin_page_run(&mut self) -> bool {
        let page = self.page.as_mut();
        let Some(page) = page.filter(|page| page.page.has_room()) else {
            return false;
        };
        let with = page.with;
        page.limits = Some(self.limits);
        match page.recording.take() {
            Some(recording) => self.attached.watchers.recording = Some(recording),
            None => self.record_with_tail(with.kernel, with.debug, None),
        }
        self.limit_told_run();
        true
    }

    /// Adds the run on a packet of a capture to the page.
    pub(super) fn end_page_run(
        &mut self,
        packet: u64,
        record: &Record<'_>,
        outcome: Result<(u32, Option<Redirect>), &RunError>,
    ) {
        if self.page.is_none() {
            return;
        }
        let frame = record.data();
        let time = record.timestamp();
        let line = PacketLine {
            packet,
            time: time.map_or_else(String::new, |at| {
                format!("{}.{:09}", at.seconds, at.nanoseconds)
            }),
            captured: frame.len(),
            wire: record.wire_len(),
            text: summary(frame, FirstHeader::Link),
            ..PacketLine::default()
        };
        let after = self.captured().map(|input| input.kept_frame(usize::MAX));
        let after = after.map(|after| after.into_owned());
        let printed = self.printed().clone();
        self.add_page_run(line, (frame, after.as_deref()), outcome, &printed);
    }

    fn add_page_run(
        &mut self,
        mut line: PacketLine,
        frames: (&[u8], Option<&[u8]>),
        outcome: Result<(u32, Option<Redirect>), &RunError>,
        printed: &PrintedText,
    ) {
        let Some(mut page) = self.page.take() else {
            return;
        };
        if let Some(limits) = page.limits.take() {
            self.set_limits(limits);
        }
        let executed = self
            .attached
            .watchers
            .recording
            .is_none()
            .then(|| self.executed())
            .flatten();
        line.executed = executed;
        let recorded = self
            .attached
            .watchers
            .recording
            .take()
            .and_then(|mut recording| {
                let recorded = recording.recorded.take();
                page.recording = Some(recording);
                recorded
            });
        let told = match outcome {
            Ok((retval, redirect)) => {
                line.verdict = verdict(self.kind(), retval).name.into_owned();
                line.retval = Some(retval);
                line.redirect = redirect.map(redirect_text).unwrap_or_default();
                Ok(retval)
            }
            Err(error) => {
                line.verdict = match error.is_stop() {
                    true => "stopped".to_owned(),
                    false => "error".to_owned(),
                };
                Err(error.to_string())
            }
        };
        let why: Option<Why> =
            recorded.map(|run| self.tell(&run, frames, told, printed, page.with));
        page.page.add(&line, why.as_ref());
        self.page = Some(page);
    }
}
