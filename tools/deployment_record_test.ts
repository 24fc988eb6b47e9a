import assert from "node:assert/strict";
import { BadArgument, readRecords, type RecordHost, writeRecord } from "./deployment_record.ts";

const COMMIT = "a".repeat(40);
const digest = (char: string) => `sha256:${char.repeat(64)}`;

interface Deployment {
  readonly ref: string;
  readonly task: string;
  readonly environment: string;
  readonly payload: unknown;
}

/** A host that keeps deployments as GitHub does: the latest first, by pages, filtered by commit, task and environment. */
async function withHost(test: (host: RecordHost, kept: Deployment[]) => Promise<void>): Promise<void> {
  const kept: Deployment[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (request.headers.get("authorization") !== "Bearer t") {
      return Response.json({ message: "Bad credentials" }, { status: 401 });
    }
    const { pathname, searchParams: query } = new URL(request.url);
    assert.equal(pathname, "/repos/o/r/deployments");
    if (request.method === "POST") {
      kept.unshift(await request.json());
      return Response.json({}, { status: 201 });
    }
    const matching = kept.filter(({ ref, task, environment }) =>
      ref === query.get("sha") && task === query.get("task") && environment === query.get("environment")
    );
    const [page, size] = [Number(query.get("page")), Number(query.get("per_page"))];
    return Response.json(matching.slice((page - 1) * size, page * size));
  });
  try {
    await test({ apiUrl: `http://127.0.0.1:${server.addr.port}`, repository: "o/r", token: "t" }, kept);
  } finally {
    await server.shutdown();
  }
}

Deno.test("what staging recorded of a commit is what production reads, the latest of each worker, beyond a page", async () => {
  await withHost(async (host, kept) => {
    await writeRecord(host, COMMIT, { worker: "a", digest: digest("1") });
    await writeRecord(host, COMMIT, { worker: "a", digest: digest("2") });
    await writeRecord(host, "b".repeat(40), { worker: "b", digest: digest("9") });
    await writeRecord(host, COMMIT, { worker: "b", digest: digest("3") });
    for (let i = 0; i < 150; i++) await writeRecord(host, COMMIT, { worker: "c", digest: digest("4") });
    // Others keep deployments there too.
    const strange = { ref: COMMIT, task: "laneway-image", environment: "staging" };
    kept.unshift({ ...strange, payload: "no json" }, {
      ...strange,
      payload: JSON.stringify({ worker: "a", digest: "latest" }),
    });
    assert.deepEqual(await readRecords(host, COMMIT, ["a", "b"]), { a: digest("2"), b: digest("3") });
  });
});

Deno.test("a worker that staging did not build cannot be promoted", async () => {
  await withHost(async (host) => {
    await writeRecord(host, COMMIT, { worker: "a", digest: digest("1") });
    await assert.rejects(
      readRecords(host, COMMIT, ["a", "b", "c"]),
      /recorded no image of b, c; let the staging workflow/,
    );
  });
});

Deno.test("a tag in place of a digest, a short commit and a refusal of the host are told, without the token", async () => {
  await withHost(async (host) => {
    await assert.rejects(writeRecord(host, COMMIT, { worker: "a", digest: "latest" }), BadArgument);
    await assert.rejects(readRecords(host, "abc123", ["a"]), BadArgument);
    await assert.rejects(readRecords({ ...host, token: "stolen" }, COMMIT, ["a"]), (error: Error) => {
      assert.match(error.message, /401: .*Bad credentials/);
      assert.doesNotMatch(error.message, /stolen/);
      return true;
    });
  });
});
