/** From what was thrown to what the client sees. Texts of the contract are fixed; causes of 500 go to the log only. */
import type { z } from "zod";
import { ApiError, ConfigError, DialError, messageOf } from "#core/errors.ts";

export interface Detail {
  readonly path: string;
  readonly message: string;
}

export interface ErrorAnswer {
  readonly status: number;
  readonly message: string;
  readonly details?: readonly Detail[];
  /** Null: it is not known when the same request may be tried again. */
  readonly retryAfterSeconds?: number | null;
  /** Ours to repair: the log gets the cause, the client a neutral text. */
  readonly internal: boolean;
}

export const bodyInvalid = () => new ApiError(400, "Body invalid");
export const unauthorized = () => new ApiError(401, "Unauthorized");
export const forbidden = () => new ApiError(403, "Forbidden");
export const notFound = () => new ApiError(404, "Resource not found");

/** A body of 1 MiB can have half a million faults; the answer lists the first ones. */
const MAX_DETAILS = 16;

/** A request whose JSON or query does not have the shape of its route. */
export class ShapeError extends ApiError {
  readonly details: readonly Detail[];
  constructor(error: z.ZodError) {
    const issues = error.issues.slice(0, MAX_DETAILS);
    const details = issues.map((issue) => ({ path: issue.path.join("."), message: issue.message }));
    const worded = error.issues.find((issue) => issue.code !== "invalid_type");
    super(
      400,
      worded === undefined ? "Body invalid" : `${worded.path.join(".") || "body"}: ${worded.message}`,
    );
    this.details = details;
  }
}

/** 401: the secret is right, and a one-time code is to come with it. The detail `code` tells programs so. */
export class CodeError extends ApiError {
  readonly details: readonly Detail[];
  constructor(message: string) {
    super(401, message);
    this.details = [{ path: "code", message }];
  }
}

export function answerTo(error: unknown): ErrorAnswer {
  if (error instanceof ShapeError || error instanceof CodeError) {
    const { status, message, details } = error;
    return { status, message, details, internal: false };
  }
  const status = statusOf(error);
  if (status === null) return { status: 500, message: "Internal Server Error", internal: true };
  const isTimeout = error instanceof DialError && status === 504;
  const retryAfterSeconds = error instanceof ApiError ? error.retryAfterSeconds : null;
  return { status, message: isTimeout ? "Timeout" : messageOf(error), retryAfterSeconds, internal: false };
}

function statusOf(error: unknown): number | null {
  if (error instanceof ApiError) return error.status;
  if (error instanceof ConfigError) return 400;
  if (error instanceof DialError) return error.reason === "timeout" ? 504 : 503;
  return null;
}

/** `error` repeats `message`: dashboards read the one, admin clients the other. */
export function errorBody({ message, details }: ErrorAnswer): string {
  return JSON.stringify({ message, error: message, ...(details === undefined ? {} : { details }) });
}
