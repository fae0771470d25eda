import { AdminGate } from "#ui/parts/admin-gate.tsx";
import { UserTable } from "./user-table.tsx";

export function UsersPage() {
  return (
    <AdminGate title="Users" subject="Managed users" absent="No managed users here">
      <UserTable />
    </AdminGate>
  );
}
