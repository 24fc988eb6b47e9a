import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import { systemClock } from "./clock.ts";
import { beginHold, endHold, nextTurn } from "./turns.ts";

/** Keeps the thread for `ms`. */
function work(ms: number): void {
  beginHold();
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

function serveHere(): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => new Response("here"));
}

async function ask(server: Deno.HttpServer<Deno.NetAddr>): Promise<string> {
  return await (await fetch(`http://127.0.0.1:${server.addr.port}`)).text();
}

Deno.test("a timer that is due fires within a turn or two", async () => {
  let fired = false;
  setTimeout(() => fired = true, 1);
  work(5);
  for (let turns = 0; !fired; turns++) {
    assert.ok(turns < 3, `${turns} turns went by`);
    await nextTurn();
  }
});

/** Whether the event loop turned between the work and its answer. */
async function turnsAfter(ms: number): Promise<boolean> {
  let turned = false;
  const turn = nextTurn().then(() => turned = true);
  work(ms);
  await endHold();
  const answered = turned;
  await turn;
  return answered;
}

Deno.test("work that held the thread is answered in another turn, work that comes by itself at once", async () => {
  assert.equal(await turnsAfter(20), true);
  // The machine may take the thread away meanwhile: one of a few is enough.
  let tries = 0;
  while (await turnsAfter(0)) assert.ok(++tries < 20, "each of them waited");
});

Deno.test("a socket is served while turns follow each other without a rest", async () => {
  const server = serveHere();
  try {
    let answer = "";
    const asked = ask(server).then((text) => answer = text);
    // The runtime by itself looks at sockets every 61st turn; a request and its answer need several looks.
    let turns = 0;
    for (; answer === "" && turns < 200; turns++) {
      work(10);
      await nextTurn();
    }
    await asked;
    assert.ok(turns <= 61, `answered after ${turns} turns`);
  } finally {
    await server.shutdown();
  }
});

Deno.test("two that work and sleep for 0 ms rest together, so that a socket is served beside them too", async () => {
  const server = serveHere();
  try {
    let answer = "";
    const asked = ask(server).then((text) => answer = text);
    let turns = 0;
    const worker = async () => {
      for (; answer === "" && turns < 400; turns++) {
        work(5);
        await systemClock.sleep(0);
      }
    };
    await Promise.all([worker(), worker()]);
    await asked;
    assert.ok(turns <= 122, `answered after ${turns} turns`);
  } finally {
    await server.shutdown();
  }
});

/** A turn that has become a rest, as holds have gone on for long. */
function restAfterHolds(): Promise<void> {
  work(60);
  return nextTurn();
}

Deno.test("who joins a rest late has kept the process busy: it begins again", async () => {
  const order: string[] = [];
  const rest = restAfterHolds().then(() => order.push("rest"));
  void nextTurn();
  // Set after the rest's first timer and before its second.
  await new Promise<void>((resolve) => void setTimeout(resolve, 0));
  order.push("timer");
  await rest;
  assert.deepEqual(order, ["timer", "rest"]);
});

Deno.test("a rest ends although somebody joins it again and again", async () => {
  let over = false;
  const rest = restAfterHolds().then(() => over = true);
  let joins = 0;
  for (; !over && joins < 100; joins++) {
    await new Promise<void>((resolve) => void setImmediate(resolve));
    work(2);
    void nextTurn();
  }
  assert.ok(joins < 100, `${joins} joined it`);
  await rest;
});
