import assert from "node:assert/strict";
import {
  BadName,
  camelOf,
  checkKind,
  checkLane,
  checkRecord,
  checkWorker,
  MADE,
  pascalOf,
  pluralOf,
  rename,
  TEMPLATE,
} from "./names.ts";
import { workerFiles } from "./template.ts";

function refusal(check: () => unknown): string {
  try {
    check();
  } catch (error) {
    assert.ok(error instanceof BadName, String(error));
    return error.message;
  }
  assert.fail("it was taken");
}

Deno.test("a bad name is refused with its value, the rule and an example", () => {
  for (
    const name of ["", "Invoice", "invoice_mailer", "-a", "a-", "a--b", "9a", "a b", "é", "a/../b", "a".repeat(41)]
  ) {
    assert.match(
      refusal(() => checkWorker(name)),
      /^Cannot use worker name ".*": it must be .* such as invoice-mailer$/,
    );
  }
  for (const kind of ["", "mail", "MAIL-INVOICE", "_A", "A_", "A__B", "1A", "MAIL INVOICE", "A".repeat(64)]) {
    assert.match(refusal(() => checkKind(kind)), /^Cannot use work kind ".*": it must be .* such as MAIL_INVOICE$/);
  }
  for (const lane of ["", " ", "a b", "-a", "ä", "a".repeat(64)]) {
    assert.match(refusal(() => checkLane(lane)), /^Cannot use --lane ".*": it must be .* such as mail$/);
  }
  for (const record of ["", "Invoice", "order-line", "a__b"]) {
    assert.match(refusal(() => checkRecord("MAIL_INVOICE", record)), /^Cannot name the record ".*": it must be /);
  }
  for (const record of ["org", "work", "pg_thing", "queue"]) {
    assert.match(refusal(() => checkRecord("MAIL_INVOICE", record)), /taken by the house: such as --record invoice$/);
  }
  assert.match(refusal(() => checkRecord("DELETE_ORG")), /"org": .* --record delete_request$/);
  assert.match(refusal(() => checkRecord("B".repeat(63))), /--record request$/, "the name it proposes is taken");
});

Deno.test("the record is the kind without its verb, and many of it are named as people do", () => {
  assert.equal(checkRecord("MAIL_INVOICE"), "invoice");
  assert.equal(checkRecord("SHIP_ORDER_LINE"), "order_line");
  assert.equal(checkRecord("REINDEX"), "reindex_job");
  assert.equal(checkRecord("MAIL_INVOICE", "bill"), "bill");
  const many = {
    invoice: "invoices",
    reply: "replies",
    key_day: "key_days",
    box: "boxes",
    batch: "batches",
    bus: "buses",
  };
  for (const [one, plural] of Object.entries(many)) assert.equal(pluralOf(one), plural);
});

Deno.test("a kind that names many of a record is refused with the name of one; what only looks so is taken", () => {
  const many = { MAIL_INVOICES: "invoice", SORT_BOXES: "box", SEND_REPLIES: "reply", CHECK_KEY_DAYS: "key_day" };
  for (const [kind, one] of Object.entries(many)) {
    assert.match(refusal(() => checkRecord(kind)), new RegExp(`not of many: give --record ${one}, or --record `));
  }
  for (const one of ["status", "address", "analysis", "bus", "virus"]) {
    assert.equal(checkRecord(`READ_${one.toUpperCase()}`), one);
  }
  assert.equal(checkRecord("READ_NEWS", "news"), "news");
});

Deno.test("a record that the language or the made code has a name for is refused, and so are only such", async () => {
  for (const kind of ["SHIP_PACKAGE", "OPEN_CASE", "RUN_EXPORT", "BACKUP_DATABASE", "MAKE_CALL", "SEND_TEXT"]) {
    assert.match(refusal(() => checkRecord(kind)), /the code that is made has that name .* --record \w+_request$/);
  }
  for (const record of ["message", "event", "document", "file", "report", "page", "image", "number"]) {
    assert.equal(checkRecord("SEND_IT", record), record);
  }
  const files = await workerFiles(TEMPLATE, null);
  const identifiers = new Set(files.flatMap(({ text }) => text.match(/\b[a-zA-Z]\w*\b/g) ?? []));
  const has = (name: string) => [camelOf(name), pascalOf(name), `${name}s`].some((form) => identifiers.has(form));
  assert.deepEqual(MADE.filter((name) => !has(name)), [], "the template has no such name any more");
});

Deno.test("the article goes by how the record's name sounds", () => {
  const articles = {
    an: ["invoice", "order_line", "hour", "email", "uninstall", "upload", "unimportant_thing", "error"],
    a: ["user_list", "uniform", "unit", "usage", "euro_transfer", "one_key_day", "url", "utility", "shipment", "house"],
  };
  for (const [article, records] of Object.entries(articles)) {
    for (const record of records) {
      assert.equal(rename("A sample record.", { ...TO, record }).split(" ")[0]?.toLowerCase(), article, record);
    }
  }
});

const TO = { worker: "line-shipper", kind: "SHIP_ORDER_LINE", lane: "eu", record: "order_line" };

Deno.test("rename() gives every form of every name, and nothing twice", () => {
  const forms = "sample-worker SampleWorker sample-lane HANDLE_SAMPLE_RECORD HandleSampleRecord handleSampleRecord " +
    "handle_sample_record SAMPLE_RECORDS SampleRecords sampleRecords sample_records sample-records sampleRecordId SampleRecord";
  assert.equal(
    rename(forms, TO),
    "line-shipper LineShipper eu SHIP_ORDER_LINE ShipOrderLine shipOrderLine ship_order_line " +
      "ORDER_LINES OrderLines orderLines order_lines order-lines orderLineId OrderLine",
  );
  assert.equal(rename("Sample records; a sample record", TO), "Order lines; an order line");
  assert.equal(rename("A sample record", { ...TO, record: "shipment" }), "A shipment");
  // A name that looks like one of the template's is left as it was given.
  assert.equal(
    rename("sample-worker sample-lane", { ...TO, worker: "sample-lane", lane: "sample-worker" }),
    "sample-lane sample-worker",
  );
  assert.equal(rename(forms, TEMPLATE), forms);
});
