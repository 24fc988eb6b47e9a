/**
 * Times as the server writes them.
 *
 * @module
 */

// "2026-11-30 15:43:29.123456+00": what is written of all but far away times in UTC, digits of a second but for closing zeros.
const SHORTEST = "2026-11-30 15:43:29+00".length;
const LONGEST = "2026-11-30 15:43:29.123456+00".length;
const DIGIT_PLACES = [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18];

/**
 * A time, cut to milliseconds as `new Date` does it, whose own reading of this form takes five times as long: at three
 * times an item that shows.
 */
export function parseTimestamp(text: string): Date {
  const end = text.length - 3;
  if (text.length < SHORTEST || text.length > LONGEST || !text.endsWith("+00")) return new Date(text);
  for (const place of DIGIT_PLACES) if (!isDigit(text.charCodeAt(place))) return new Date(text);
  let ms = 0;
  for (let i = 0; i < 3; i++) {
    const place = 20 + i;
    ms = ms * 10 + (place < end ? digit(text, place) : 0);
  }
  const year = pair(text, 0) * 100 + pair(text, 2);
  const date = new Date(Date.UTC(
    year,
    pair(text, 5) - 1,
    pair(text, 8),
    pair(text, 11),
    pair(text, 14),
    pair(text, 17),
    ms,
  ));
  // Both the language's reader and its calendar put years below 100 into a later century.
  if (year < 100) date.setUTCFullYear(year);
  return date;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function digit(text: string, place: number): number {
  return text.charCodeAt(place) - 48;
}

function pair(text: string, place: number): number {
  return digit(text, place) * 10 + digit(text, place + 1);
}
