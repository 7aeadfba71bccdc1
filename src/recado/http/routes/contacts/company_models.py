"""Bodies of the operations on companies (C20)."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from recado.domain.contacts.contact import MOST_ATTRIBUTES
from recado.domain.contacts.documents import canonical_cnpj
from recado.domain.core.errors import Problem
from recado.domain.core.ids import ACCOUNT, CONTACT
from recado.http.api.models import ApiModel, PatchModel, QueryInt, Timestamp, unset
from recado.http.api.paging import MOST_SKIPPED, CountedPage, ListedQuery
from recado.http.routes.contacts.contact_answers import ContactOut
from recado.http.routes.core.views import view_with
from recado.http.routes.core.web_addresses import WebAddress
from recado.storage.contacts.companies import Company, Counts

MOST_LISTED = 100


def _cnpj(text: str) -> str:
    try:
        return canonical_cnpj(text)
    except Problem as problem:
        raise PydanticCustomError("cnpj_invalid", "{reason}", {"reason": problem.detail}) from None


Name = Annotated[str, Field(min_length=1, max_length=200)]
Cnpj = Annotated[
    str,
    Field(max_length=64, description="With or without mask, numeric or alphanumeric.", examples=["11.222.333/0001-81"]),
    AfterValidator(_cnpj),
]
Segment = Annotated[str, Field(min_length=1, max_length=100)]
Address = Annotated[str, Field(min_length=1, max_length=500)]
ResponsibleId = Annotated[str, Field(max_length=64, description=f"Prefix {ACCOUNT}: an account.")]
MainContactId = Annotated[
    str,
    Field(max_length=64, description=f"Prefix {CONTACT}. The contact joins the company when it has none."),
]
Attributes = Annotated[
    dict[str, Any], Field(description="Texts, numbers, booleans, null, or lists of short texts; at most 100.")
]


class CompanyQuery(ListedQuery):
    """Filters of the list of companies, and its page."""

    q: Annotated[
        str | None,
        Field(min_length=1, max_length=200, description="A part of the name; or a CNPJ whose check digits are right."),
    ] = None
    responsavel_id: Annotated[str | None, Field(max_length=64)] = None
    limit: Annotated[QueryInt, Field(ge=1, le=MOST_LISTED, description="How many items to answer.")] = 25
    skip: Annotated[QueryInt, Field(ge=0, le=MOST_SKIPPED, description="How many items to leave out first.")] = 0


class CompanyCreate(ApiModel):
    """A new company."""

    nome: Name
    cnpj: Cnpj | None = None
    segmento: Segment | None = None
    site: WebAddress | None = None
    endereco: Address | None = None
    responsavel_id: ResponsibleId | None = None
    contato_principal_id: MainContactId | None = None
    atributos: Attributes | None = None


class CompanyPatch(PatchModel):
    """What to change. `atributos` are merged key by key; `removerAtributos` takes keys out."""

    nome: Name = unset()
    cnpj: Cnpj | None = None
    segmento: Segment | None = None
    site: WebAddress | None = None
    endereco: Address | None = None
    responsavel_id: ResponsibleId | None = None
    contato_principal_id: MainContactId | None = None
    atributos: Attributes | None = None
    remover_atributos: Annotated[list[str], Field(max_length=MOST_ATTRIBUTES)] = unset()


class Contagens(ApiModel):
    """What is counted now. There are no deals: theirs are 0."""

    contatos: int
    negocios_abertos: int
    valor_aberto: float
    ultima_interacao: Annotated[Timestamp | None, Field(description="The latest among the company's contacts.")]


class CompanyOut(ApiModel):
    """A company."""

    id: str
    organization_id: str
    nome: str
    cnpj: str | None = None
    segmento: str | None = None
    site: str | None = None
    endereco: str | None = None
    responsavel_id: str | None = None
    contato_principal_id: str | None = None
    atributos: dict[str, Any]
    created_by_id: str | None = None
    created_at: Timestamp
    updated_at: Timestamp
    contagens: Contagens


class CompanyPage(CountedPage[CompanyOut]):
    """Companies, by name."""


class CompanyContactPage(CountedPage[ContactOut]):
    """Contacts of one company, newest first."""


def _counted(_: Company, counts: Counts) -> dict[str, Any]:
    return {
        "contatos": counts.contacts,
        "negociosAbertos": 0,
        "valorAberto": 0,
        "ultimaInteracao": counts.last_interaction_at,
    }


# With what its contacts say now.
company_view = view_with(
    Company,
    CompanyOut,
    nome=lambda company, _: company.name,
    segmento=lambda company, _: company.segment,
    endereco=lambda company, _: company.address,
    responsavel_id=lambda company, _: company.responsible_id,
    contato_principal_id=lambda company, counts: company.main_contact_id if counts.has_main_contact else None,
    atributos=lambda company, _: company.attributes,
    contagens=_counted,
)
