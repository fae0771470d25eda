/**
 * What answers are made of, for the document. Nothing is checked or written by these while requests are served: tests
 * hold every answer to them.
 */
import * as z from "zod";

/** A number of things, bytes or seconds. */
export const amount = () => z.int().min(0);

/** RFC 3339; `0001-01-01T00:00:00Z` is never. */
export const instant = () => z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)$/);

export const unixMs = () => amount().describe("Unix ms");
export const unixSeconds = () => amount().describe("Unix seconds");

export const texts = () => z.array(z.string());

export const portNumber = () => z.int().min(0).max(65_535);

/** A port as text: dashboards compare it with "443". */
export const portText = () => z.string().regex(/^\d{1,5}$/);

/** Any JSON: its content comes from outside. */
export const anyJson = () => z.unknown();
