/**
 * Filters as PostgREST reads them.
 *
 * @module
 */

/** One parameter of a query: the column or keyword, and what stands behind the equals sign. */
export type Filter = readonly [name: string, value: string];

/** Equal to a value. Everything behind the first dot is the value, so nothing in it needs quotes. */
export function eq(name: string, value: string | number): Filter {
  return [name, `eq.${value}`];
}

/** One of the values. */
export function oneOf(name: string, values: readonly string[]): Filter {
  return [name, `in.(${values.map(quoted).join(",")})`];
}

/** Null, or equal to a value. */
export function nullOr(name: string, value: string): Filter {
  return ["or", `(${name}.is.null,${name}.eq.${quoted(value)})`];
}

/** A row that meets all conditions of one of the groups, each a column and the value it equals. */
export function anyOf(groups: readonly Readonly<Record<string, string>>[]): Filter {
  const ands = groups.map((group) =>
    `and(${Object.entries(group).map(([name, value]) => `${name}.eq.${quoted(value)}`).join(",")})`
  );
  return ["or", `(${ands.join(",")})`];
}

/** Within lists a value stands in quotes, as commas, dots and parentheses would end it. */
export function quoted(value: string): string {
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** The query of a URL. */
export function toQuery(filters: readonly Filter[]): string {
  return filters.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join("&");
}
