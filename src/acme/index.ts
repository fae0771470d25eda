/** All of ACME that only those need who ask for certificates: it is loaded then, and never before. */
export { CertificateKeeper } from "./keeper.ts";
