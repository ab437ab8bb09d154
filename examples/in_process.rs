//! A node inside a program: two aggregates, a saga between them, and two ways to send commands.
//!
//! `cargo run --example in_process` prints what happens; its test runs the same.

#![allow(clippy::print_stdout, reason = "an example shows what it has done")]

use actix::prelude::{Actor, Context, Handler, Message, Recipient, ResponseFuture};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wow::prelude::*;

/// A book of a library, and who has it.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(Lend, TakeBack))]
struct Book {
    #[aggregate(id)]
    id: String,
    reader: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum BookEvent {
    Lent { reader: String },
    TakenBack,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
struct Lend {
    reader: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(pure)]
struct TakeBack {
    #[command(id)]
    book: String,
}

impl Evolve for Book {
    type Event = BookEvent;

    fn evolve(&mut self, event: &BookEvent) {
        self.reader = match event {
            BookEvent::Lent { reader } => Some(reader.clone()),
            BookEvent::TakenBack => None,
        };
    }
}

impl Decide<Lend> for Book {
    async fn decide(
        &self,
        command: &Lend,
        _context: &DecideContext,
    ) -> Result<Decision<BookEvent>, Rejection> {
        if let Some(reader) = &self.reader {
            return Err(Rejection::new("book.lent", format!("{reader} has it")));
        }
        let reader = command.reader.clone();
        Ok(Decision::event(BookEvent::Lent { reader }))
    }
}

impl Decide<TakeBack> for Book {
    async fn decide(
        &self,
        _command: &TakeBack,
        _context: &DecideContext,
    ) -> Result<Decision<BookEvent>, Rejection> {
        Ok(match self.reader {
            Some(_) => Decision::event(BookEvent::TakenBack),
            // It is here already: nothing is committed, and nobody is told off.
            None => Decision::none(),
        })
    }
}

/// A reader, and how many books were ever lent to them.
#[derive(Debug, Default, Clone, Serialize, Deserialize, JsonSchema, Aggregate)]
#[aggregate(commands(NoteLoan))]
struct Reader {
    loans: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize, Event)]
enum ReaderEvent {
    LoanNoted { book: String },
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, Command)]
#[command(upserts, pure)]
struct NoteLoan {
    book: String,
}

impl Evolve for Reader {
    type Event = ReaderEvent;

    fn evolve(&mut self, ReaderEvent::LoanNoted { .. }: &ReaderEvent) {
        self.loans += 1;
    }
}

impl Decide<NoteLoan> for Reader {
    async fn decide(
        &self,
        command: &NoteLoan,
        _context: &DecideContext,
    ) -> Result<Decision<ReaderEvent>, Rejection> {
        let book = command.book.clone();
        Ok(Decision::event(ReaderEvent::LoanNoted { book }).with_result("loans", self.loans + 1))
    }
}

/// Tells a reader's record of each loan. Handled again after a crash, it sends the same commands
/// with the same request ids, so no loan is noted twice.
struct LoanSaga;

impl Saga for LoanSaga {
    type Aggregate = Book;
    const NAME: &'static str = "LoanSaga";

    fn handle(&self, event: &BookEvent, entry: &SagaEntry<'_, Book>) -> Vec<SagaCommand> {
        match event {
            BookEvent::Lent { reader } => {
                let book = entry.state.id.clone();
                vec![SagaCommand::to(reader, NoteLoan { book })]
            }
            BookEvent::TakenBack => Vec::new(),
        }
    }
}

/// An actor of the program's own: the desk where books come back.
struct Desk {
    admission: Recipient<Submit>,
}

/// A book is on the desk. Each arrival has a name of its own, by which it is booked only once.
#[derive(Message)]
#[rtype(result = "Result<CommandResult, CommandError>")]
struct BookArrived {
    book: String,
    arrival: String,
}

impl Actor for Desk {
    type Context = Context<Self>;
}

impl Handler<BookArrived> for Desk {
    type Result = ResponseFuture<Result<CommandResult, CommandError>>;

    fn handle(&mut self, message: BookArrived, _context: &mut Self::Context) -> Self::Result {
        // The command names its aggregate itself, in the field that it marks; another would be
        // named with `.aggregate_id(…)`.
        let BookArrived { book, arrival } = message;
        let submit = Submit::new(TakeBack { book })
            .request_id(arrival)
            .wait(Stage::Processed);
        let asked = self.admission.send(submit);
        Box::pin(async move { asked.await.unwrap_or(Err(CommandError::ShuttingDown)) })
    }
}

type Failure = Box<dyn std::error::Error>;

async fn run() -> Result<(), Failure> {
    let node = NodeBuilder::in_memory()
        .register::<Book>()
        .register::<Reader>()
        .saga(LoanSaga)
        .start()
        .await?;
    let handle = node.handle();
    let lend = |request: &str| {
        let reader = "ann".to_owned();
        handle
            .send(Lend { reader })
            .to("moby-dick")
            .request_id(request)
    };

    // Waits until the saga's own command has committed, too.
    let lent = lend("loan-1").wait(Stage::SagaHandled).await?;
    println!("lent: version {:?}, {}", lent.aggregate_version, lent.stage);
    assert_eq!((lent.aggregate_version, lent.duplicate), (Some(1), false));

    // The same request again, as after a lost answer: the first result, and nothing done twice.
    let again = lend("loan-1").await?;
    println!(
        "again: version {:?}, duplicate {}",
        again.aggregate_version, again.duplicate
    );
    assert_eq!((again.aggregate_version, again.duplicate), (Some(1), true));
    assert_eq!(again.command_id, lent.command_id);

    // Another request for the same book is the domain's to refuse.
    let refused = lend("loan-2").await.expect_err("ann has it");
    println!("refused: {} ({refused})", refused.code());
    assert_eq!(refused.code(), "book.lent");

    // An actor sends messages to the node, as to any other actor.
    let desk = Desk {
        admission: node.admission()?,
    }
    .start();
    let arrived = |arrival: &str| BookArrived {
        book: "moby-dick".to_owned(),
        arrival: arrival.to_owned(),
    };
    let returned = desk.send(arrived("return-1")).await??;
    println!("returned: version {:?}", returned.aggregate_version);
    assert_eq!(
        (returned.aggregate_version, returned.committed),
        (Some(2), true)
    );
    let again = desk.send(arrived("return-1")).await??;
    assert_eq!((again.aggregate_version, again.duplicate), (Some(2), true));
    let idle = desk.send(arrived("return-2")).await??;
    assert_eq!((idle.aggregate_version, idle.committed), (Some(2), false));

    // What the saga has sent before is there to be read.
    let reader: Reader = node.read("ann").await?;
    println!("ann has borrowed {} book", reader.loans);
    assert_eq!(reader.loans, 1);

    let report = node.stop().await;
    assert_eq!(report.unfinished, 0);
    Ok(())
}

#[actix::main]
async fn main() -> Result<(), Failure> {
    run().await
}

#[cfg(test)]
mod tests {
    #[actix::test]
    async fn a_node_runs_inside_a_program() {
        super::run().await.expect("each step does what it says");
    }
}
