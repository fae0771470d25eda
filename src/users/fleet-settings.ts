/** A node's part of the configuration, resolved. */
export interface FleetSettings {
  /** Secret. Null with `dsnFile` null: the environment names the database. */
  readonly dsn: string | null;
  /** Absolute path. */
  readonly dsnFile: string | null;
  /** PEM or absolute path; null: the runtime's authorities. */
  readonly ca: string | null;
  readonly node: string;
  /** What subscription links name. */
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Once the leases are spent and the database is away. */
  readonly onPartition: "allow" | "overage" | "stop";
}
