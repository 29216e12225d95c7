//! Rust blocks of the pages that are parts of programs: each is the body of a function.

use std::error::Error;
use std::net::IpAddr;

use beebox::{Filter, Object};

pub(super) fn link(main: Vec<u8>, count: Vec<u8>) -> Result<Vec<u8>, Box<dyn Error>> {
    use beebox::internal::object::Linker;

    let linked = Linker::new()
        .add("main.bpf.o", &main)?
        .add("count.bpf.o", &count)?
        .finish()?;
    Ok(linked)
}

pub(super) fn one_line(bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    use beebox::internal::text::{self, Form};

    // In any form.
    let program = text::read(bytes, None)?;
    let line = text::write(&program, Form::OneLine);
    Ok(line)
}

pub(super) fn router(object: Object, router: IpAddr) -> Result<(), Box<dyn Error>> {
    use beebox::Loader;
    use beebox::network::{NetDevice, Route, RoutePrefix, System};

    let mut system = System::default();
    let network = &mut system.network;
    network.add_device(NetDevice::ethernet(2, "lan".into()));
    let route = Route::via(RoutePrefix::ALL_IPV4, router, 2);
    network.add_route(route);
    network.add_neighbour(2, router, [2, 0, 0, 0, 1, 1]);
    let instance = Loader::default().system(system).load(&object)?;
    assert!(instance.program("route").is_ok());
    Ok(())
}

fn sockets(object: Object) -> Result<(), Box<dyn Error>> {
    use beebox::Loader;
    use beebox::network::{NetSocket, System};

    let mut system = System::default();
    let network = &mut system.network;
    network.add_socket(NetSocket::listener("[::]:22".parse()?));
    let peer = "192.0.2.1:52956".parse()?;
    network.add_socket(NetSocket::connection("192.0.2.2:22".parse()?, peer));
    let instance = Loader::default().system(system).load(&object)?;
    instance.map("servers")?.set_socket(&0u32, 1)?;
    Ok(())
}

fn symbols(filter: &Filter) -> Result<(), Box<dyn Error>> {
    use beebox::internal::perf::SymbolMap;

    let symbols = SymbolMap::open()?;
    if let Some(code) = filter.native_code("ssh") {
        symbols.add(&code)?;
    }
    Ok(())
}

fn dump(filter: &Filter) -> Result<(), Box<dyn Error>> {
    use std::path::Path;

    use beebox::internal::perf::JitDump;

    let dump = JitDump::create(Path::new("."))?;
    if let Some(code) = filter.native_code("ssh") {
        dump.add(&code)?;
    }
    Ok(())
}

fn covered(object: Object) -> Result<(), Box<dyn Error>> {
    use beebox::Loader;

    let instance = Loader::default().coverage(true).load(&object)?;
    // runs
    std::fs::write("tests.info", instance.coverage().lcov())?;
    Ok(())
}

fn presets() -> Result<(), Box<dyn Error>> {
    use beebox::{Kernel, kernel::Kernels as _};

    let kernel = Kernel::preset("6.12.117")?; // or "6.12", "debian-13"
    println!("{}", kernel.name());
    for preset in Kernel::presets() {
        println!("{} {}", preset.name(), preset.is_compared());
    }
    for kernel in Kernel::all_lts() {
        println!("{}", kernel.name()); // one test for each
    }
    Ok(())
}

pub(super) fn fuzzed(object: Object) -> Result<(), Box<dyn Error>> {
    use beebox::fuzz::{Fuzzer, Property};

    // A model of the program is a property, too.
    let model = Property::check("as the model", |run| {
        match run.packet.len() < 14 || run.verdict == "XDP_PASS" {
            true => Ok(()),
            false => Err(format!("got {}", run.verdict)),
        }
    });
    let report = Fuzzer::new(&object, "firewall")
        .property(model)
        .runs(10_000)
        .run()?;
    for find in &report.finds {
        println!("{}: {}\n{}", find.property, find.what, find.test);
    }
    Ok(())
}
