-- Logins of the nodes; what they see is said by schema.sh.
CREATE ROLE weir_admin NOLOGIN;
CREATE ROLE weir_node NOLOGIN;
CREATE ROLE fra1 LOGIN PASSWORD 'password of fra1' IN ROLE weir_node;
CREATE ROLE ams1 LOGIN PASSWORD 'password of ams1' IN ROLE weir_node;
