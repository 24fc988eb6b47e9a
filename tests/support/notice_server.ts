/**
 * A webhook of the tests: takes notices and keeps their titles.
 *
 * @module
 */

/** The webhook. */
export interface NoticeServer {
  readonly url: string;
  /** What was told, in order. */
  readonly titles: readonly string[];
  stop(): Promise<void>;
}

/** Starts one. */
export function noticeServer(): NoticeServer {
  const titles: string[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { embeds: [embed] } = await request.json() as { embeds: { title: string }[] };
    titles.push(embed?.title ?? "");
    return new Response(null, { status: 204 });
  });
  return { url: `http://127.0.0.1:${server.addr.port}/hook`, titles, stop: () => server.shutdown() };
}
