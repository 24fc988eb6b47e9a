/**
 * Lines out of a stream of text.
 *
 * @module
 */

/** Splits text into lines; a last one without its end is dropped. */
export class TextLineStream extends TransformStream<string, string> {
  constructor() {
    let rest = "";
    super({
      transform(chunk, controller) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) controller.enqueue(line);
      },
    });
  }
}
