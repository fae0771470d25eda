/** What goes wrong between a node and its database, as sentences; none has a password or a credential in it. */
import { errnoOf, messageOf } from "#core/errors.ts";

/** The database cannot be had, or is not what it must be. */
export class FleetError extends Error {
  override readonly name = "FleetError";
}

/** One listener of the database is not as a weir writes it; the others are not concerned. */
export class ContentError extends FleetError {}

const BY_CODE: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "the name is not known",
  EAI_AGAIN: "the name cannot be resolved now",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ENOENT: "there is no such socket",
  ECONNRESET: "the connection was reset",
  ETIMEDOUT: "no answer in time",
  CERT_HAS_EXPIRED: "its certificate has expired: renew it, or look at this machine's clock",
  CERT_NOT_YET_VALID: "its certificate is not valid yet: look at this machine's clock",
  DEPTH_ZERO_SELF_SIGNED_CERT:
    "its certificate is signed by itself; name it or its authority in svc.fleet.ca",
  SELF_SIGNED_CERT_IN_CHAIN:
    "its certificate comes from an authority that is not trusted; svc.fleet.ca names ours",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    "its certificate comes from an authority that is not trusted; svc.fleet.ca names ours",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    "its certificate comes from an authority that is not trusted; svc.fleet.ca names ours",
  CERT_SIGNATURE_FAILURE: "its certificate was not signed by the authority in svc.fleet.ca",
  // SQLSTATE, PostgreSQL's documentation, appendix A
  "28P01": "user or password is wrong",
  "28000": "this user may not connect from here (pg_hba.conf)",
  "3D000": "there is no such database",
  "53300": "it has too many connections already",
  "57P01": "it is being shut down",
  "57P03": "it is starting or ending",
  "55P03":
    "another session holds a lock for long (a backup does): look for old transactions in pg_stat_activity, then try again",
  "57014": "a statement took too long",
  "42501": "the role may not do this; weir fleet check says what is missing",
  "25006": "it takes no writes (a replica)",
};

/** Why a statement or a connection failed. */
export function reasonOf(error: unknown): string {
  if (error instanceof FleetError) return error.message;
  const code = errnoOf(error) ?? "";
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return "its certificate is for another name; the URI must name the server as its certificate does";
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  const message = messageOf(error);
  if (/timeout/i.test(message)) return "no answer in time";
  if (/does not support SSL/.test(message)) return "it offers no TLS; switch ssl on in postgresql.conf";
  return message.split("\n", 1)[0] ?? "";
}
