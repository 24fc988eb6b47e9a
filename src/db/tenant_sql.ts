/**
 * The SQL of the tenant a statement runs in.
 *
 * @module
 */

/**
 * The org of the unit at hand as a uuid, NULL outside one. Every tenant statement compares its org with it, so that the
 * part of a unit that lands on a fresh connection changes nothing. After a unit the setting is '', not NULL: hence
 * `nullif`.
 */
export const TENANT_SQL = "nullif(current_setting('laneway.org_id', true), '')::uuid";
