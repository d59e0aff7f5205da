"""A database table, kept up to date by its change events, enriches a stream of orders; revenue by city follows.

`customers` carries the rows of a table, keyed by their id: a change is a new record, a deletion one without a value.
An order finds the customer as it was at that moment. The last table shows tables alone: customers by city, corrected
when one moves.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.pipeline import Pipeline


@dataclass
class Customer:
    name: str
    city: str


@dataclass
class Order:
    customer: str
    amount: int


@dataclass
class Sale:
    amount: int
    name: str
    city: str


def sale(order: Order, customer: Customer | None) -> Sale:
    return Sale(order.amount, customer.name, customer.city) if customer else Sale(order.amount, "unknown", "unknown")


pipeline = Pipeline("enriched-orders")
customers = pipeline.table("customers", value=Customer)
orders = pipeline.stream("orders", value=Order, starting="earliest")

sales = orders.select_key(lambda order: order.customer, key=str).left_join(customers, sale, to=Sale)
sales.to("sales")
sales.group_by(lambda sale: sale.city, key=str).aggregate(int, lambda total, sale: total + sale.amount).to(
    "revenue-by-city"
)
customers.group_by(lambda key, customer: (customer.city, key), key=str).count().to("customers-by-city")
