/** By what threads shake hands with the clients of a listener with REALITY. Each has a copy. */
export interface RealityRules {
  /** X25519, 32 bytes. */
  readonly privateKey: Uint8Array;
  /** Lower case; the empty name stands for hellos without one. */
  readonly serverNames: readonly string[];
  /** 8 bytes in hex each. */
  readonly shortIds: readonly string[];
  /** By how much the client's clock may differ; 0: by anything. */
  readonly maxTimeDifferenceMs: number;
  /** Of the certificate: Ed25519, PKCS #8 in DER. */
  readonly certificateKey: Uint8Array;
  /** 32 bytes; null: certificates bear no signature of ML-DSA-65. */
  readonly mldsa65Seed: Uint8Array | null;
  /** What changes meanwhile: see `DestBoard`. */
  readonly board: SharedArrayBuffer;
}
