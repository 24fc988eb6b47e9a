import assert from "node:assert/strict";
import fc from "fast-check";
import { boundText, describeError, MAX_ERROR_LENGTH, oneLine, quoteText } from "./describe_error.ts";

function check(text: string): void {
  assert.ok(text.length > 0 && text.length <= MAX_ERROR_LENGTH, `${text.length} characters`);
  assert.ok(text.isWellFormed() && !text.includes("\u0000"));
}

Deno.test("describeError() gives bounded, storable text for anything", () => {
  const anything = fc.anything({ withBigInt: true, withNullPrototype: true, withObjectString: true });
  fc.assert(fc.property(anything, (thrown) => check(describeError(thrown))));
  const text = fc.string({ unit: "binary", maxLength: 5_000 });
  fc.assert(fc.property(text, text, anything, (name, message, cause) => {
    const error = new Error(message, { cause });
    error.name = name;
    check(describeError(error));
  }));
});

Deno.test("describeError() survives values that throw when they are looked at", () => {
  const traps: ProxyHandler<object> = {};
  for (const trap of Object.getOwnPropertyNames(Reflect) as (keyof ProxyHandler<object>)[]) {
    traps[trap] = () => {
      throw new Error("no");
    };
  }
  const revoked = Proxy.revocable([], {});
  revoked.revoke();
  class Endless {
    readonly name = "E";
    get cause(): Endless {
      return new Endless();
    }
  }
  for (const thrown of [new Proxy({}, traps), new Proxy(() => {}, traps), revoked.proxy, new Endless()]) {
    check(describeError(thrown));
  }
  check(describeError(new AggregateError([revoked.proxy, 1], "")));
});

Deno.test("describeError() names the error, its message and its causes", () => {
  const error = new TypeError("outer", { cause: new RangeError("inner", { cause: "text" }) });
  assert.equal(describeError(error), "TypeError: outer; caused by RangeError: inner");
  assert.equal(describeError("plain"), "plain");
  assert.match(describeError(new Error("x".repeat(10_000))), /more characters\)$/);
});

Deno.test("boundText() never exceeds its bound", () => {
  const text = fc.string({ unit: "binary", maxLength: 300 });
  fc.assert(fc.property(text, fc.integer({ min: 60, max: 200 }), (given, max) => {
    const bound = boundText(given, max);
    assert.ok(bound.length <= max && bound.isWellFormed());
    if (given.length <= max && given.isWellFormed() && !given.includes("\u0000")) assert.equal(bound, given);
  }));
});

Deno.test("a URL in an error loses user, password, query and fragment, also in a cause, and keeps what tells where it led", () => {
  const cause = new TypeError(
    "error sending request for url (https://a.example:8443/hooks/x?token=secret#frag): refused",
  );
  const described = describeError(
    new Error("It failed at postgres://user:p%40ss@db.example/work?sslmode=require", { cause }),
  );
  assert.equal(
    described,
    "It failed at postgres://db.example/work; caused by TypeError: error sending request for url " +
      "(https://a.example:8443/hooks/x): refused",
  );
  const plain = "a path/with:colon, 12:30, user@host, a?b#c, sqlite:./work.db";
  assert.equal(describeError(plain), plain);
});

Deno.test("what is quoted stays one line of bounded length that moves no cursor", () => {
  assert.equal(oneLine("a\r\n  b\u001b[2J\u2028c\u0000 "), "a b [2J c\ufffd");
  assert.ok(oneLine("x ".repeat(1_000_000)).length <= MAX_ERROR_LENGTH);
  assert.equal(quoteText('a"\n'), '"a\\"\\n"');
  assert.ok(quoteText("y".repeat(10_000)).length <= 200);
});
