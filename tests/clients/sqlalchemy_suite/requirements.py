"""What the engine has of what SQLAlchemy's tests ask for; a test whose requirement is closed is skipped."""

from __future__ import annotations

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

_OPEN = """
    create_table_as bound_limit_offset parens_in_union_contained_select_w_limit_offset
    parens_in_union_contained_select_wo_limit_offset boolean_col_expressions nullable_booleans nullsordering standalone_binds
    intersect except_ ctes update_from delete_from insert_from_select delete_returning insert_returning update_returning
    insert_executemany_returning insertmanyvalues multivalues_inserts views schemas implicit_default_schema
    table_reflection view_column_reflection view_reflection schema_reflection schema_create_delete unbounded_varchar
    unicode_data unicode_ddl datetime timestamp_microseconds datetime_microseconds datetime_historic date date_historic
    date_coerces_from_datetime_ autocommit isolation_level precision_numerics_general precision_numerics_enotation_small
    server_defaults expression_server_defaults implicit_decimal_binds fetch_null_from_numeric infinity_floats
    float_or_double_precision_behaves_generically text_type empty_strings_varchar empty_strings_text
    precision_numerics_retains_significant_digits precision_generic_float_type floats_to_four_decimals float_is_numeric
    expressions_against_unbounded_text selectone update_where_target_in_subquery mod_operator_as_percent_sign
    order_by_col_from_union order_by_label_with_expression independent_connections ad_hoc_engines supports_distinct_on
    supports_is_distinct_from regexp_match regexp_replace supports_bitwise_or supports_bitwise_and supports_bitwise_not
    supports_bitwise_xor supports_bitwise_shift like_escapes create_or_replace_view symbol_names_w_double_quote
    unusual_column_name_characters subqueries offset sql_expression_limit_offset group_by_complex_expression sane_rowcount
    sane_multi_rowcount sane_rowcount_w_returning arraysize duplicate_names_in_cursor_description table_value_constructor
    foreign_keys no_lastrowid_support no_sequences nested_aggregates literal_float_coercion datetime_literals_ date_implicit_bound
    named_constraints implicitly_named_constraints primary_key_constraint_reflection unique_constraint_reflection
    check_constraint_reflection inline_check_constraint_reflection duplicate_key_raises_integrity_error reflects_pk_names
    datetime_implicit_bound timestamp_microseconds_implicit_bound queue_pool standalone_null_binds_whereclause window_functions window_range
""".split()

_CLOSED = {
    "self_referential_foreign_keys": "no foreign keys",
    "deferrable_fks": "no foreign keys",
    "on_update_cascade": "no foreign keys",
    "foreign_key_constraint_reflection": "no foreign keys",
    "index_reflection": "no indexes",
    "index_ddl_if_exists": "no indexes",
    "autoincrement_insert": "no generated keys",
    "autoincrement_without_sequence": "no generated keys",
    "identity_columns": "no generated keys",
    "computed_columns": "no generated columns",
    "sequences": "no sequences",
    "temporary_tables": "no temporary tables",
    "temp_table_names": "no temporary tables",
    "temp_table_reflection": "no temporary tables",
    "create_temp_table_as": "no temporary tables",
    "has_temp_table": "no temporary tables",
    "temporary_views": "no temporary views",
    "comment_reflection": "no comments",
    "savepoints": "no savepoints",
    "two_phase_transactions": "no two-phase transactions",
    "array_type": "no arrays",
    "json_type": "no JSON",
    "binary_literals": "no BLOB",
    "binary_comparisons": "no BLOB",
    "uuid_data_type": "no UUID",
    "empty_inserts": "no generated keys",
    "time": "no TIME",
    "time_microseconds": "no TIME",
    "time_implicit_bound": "no TIME",
    "datetime_timezone": "no time zones",
    "time_timezone": "no time zones",
    "datetime_interval": "no INTERVAL columns",
    "tuple_in": "no row values in IN",
    "fetch_first": "no FETCH",
    "ctes_on_dml": "no CTE around INSERT, UPDATE and DELETE",
    "ctes_with_update_delete": "no CTE before UPDATE and DELETE",
    "server_side_cursors": "results are streamed always",
    "implements_get_lastrowid": "no row ids",
    "dbapi_lastrowid": "no row ids",
    "percent_schema_names": "no percent signs are doubled",
    "order_by_collation": "no collations",
    "column_collation_reflection": "no collations",
    "nvarchar_types": "no NVARCHAR(n)",
    "precision_numerics_enotation_large": "18 digits at most in columns",
    "precision_numerics_many_significant_digits": "18 digits at most in columns",
    "cast_precision_numerics_many_significant_digits": "18 digits at most in columns",
    "aggregate_order_by": "no ORDER BY in aggregates",
}


# Tests without a requirement that would say so: the dialect of DuckDB differs here, as theirs of SQLite or MySQL do elsewhere.
DIFFERENT = {
    "test_string_length_reflection": "the length of VARCHAR(n) says nothing in DuckDB's dialect, and is not kept",
    "test_no_results_for_non_returning_insert": "no generated keys",
    "test_autoclose_on_insert_implicit_returning": "no generated keys",
    "test_insert_from_select_autoinc": "no generated keys",
    "test_server_defaults[DateTime": "no now()",
    "test_long_convention_name[ix": "no indexes",
    "test_dialect_user_setting_is_restored": "wants an isolation level beside the default one and AUTOCOMMIT",
    "test_truediv_divisor": "a quotient of DECIMALs is DOUBLE in DuckDB's dialect, and NUMERIC is DECIMAL(18, 3)",
    "test_truediv_numeric": "a quotient of DECIMALs is DOUBLE in DuckDB's dialect",
}


class Requirements(SuiteRequirements):
    """Open or closed by name; the rest is SQLAlchemy's own default."""

    def get_isolation_levels(self, config):
        return {"default": "REPEATABLE READ", "supported": ["REPEATABLE READ", "AUTOCOMMIT"]}

    get_order_by_collation = None


for _name in _OPEN:
    setattr(
        Requirements, _name.removesuffix("_") if _name != "except_" else _name, property(lambda self: exclusions.open())
    )
for _name in _CLOSED:
    setattr(Requirements, _name, property(lambda self: exclusions.closed()))
