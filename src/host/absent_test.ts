import assert from "node:assert/strict";
import { ValidationError } from "../core/errors.ts";
import { absentManager } from "./absent.ts";

interface Books {
  append(entry: string): Promise<void>;
  readonly size: number;
}

Deno.test("whatever is asked of what a host does not have rejects, naming it and who has it", async () => {
  const books = absentManager<Books>("audit entries");
  await assert.rejects(books.append("x"), (error) => {
    assert.ok(error instanceof ValidationError);
    assert.equal(error.field, "append");
    assert.equal(
      error.message,
      "Cannot append on a host runner: audit entries are left to workers with a database",
    );
    return true;
  });
});

Deno.test("it is no promise and no collection: it can be awaited, handed on and shown without being asked", async () => {
  const books = absentManager<Books>("audit entries");
  assert.equal(await Promise.resolve(books), books);
  assert.equal(Symbol.iterator in books, false);
  assert.equal(typeof Deno.inspect(books), "string");
  assert.equal(`${Object.prototype.toString.call(books)}`, "[object Object]");
});
