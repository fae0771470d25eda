/** A node of a fleet, and what the command line does with the fleet's database. Importing this loads the driver. */
export { checkDatabase } from "./check.ts";
export { connect } from "./connection.ts";
export { FleetError, reasonOf } from "./errors.ts";
export { migrate, refuseOtherSchema } from "./migrate.ts";
export { openFleet } from "./node.ts";
export { exportState, importState } from "./move.ts";
export { TokenSeal } from "./seal.ts";
export { databaseOptions } from "./source.ts";
